#!/bin/bash
# usage: launcher_test.sh SOURCE_DIR
# Rehearses ./tpusim on a small project in place of the real one: first build, rebuild, several callers at once, failures,
# missing packages (with stand-ins for the package tools), a moved clone.
set -euo pipefail
source_dir=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

fail() {
  echo "FAILED: $*"
  failed=1
}
check() { # NAME EXPECTED ACTUAL
  [ "$2" = "$3" ] || fail "$1: expected <$2>, found <$3>"
}

project=$work/project
mkdir -p "$project"/{sim/cli,models,topologies,reports,tools}
cp "$source_dir/tpusim" "$project/"
cp "$source_dir/tools/setup.sh" "$project/tools/"
cat >"$project/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(small LANGUAGES CXX)
file(GLOB sources CONFIGURE_DEPENDS sim/cli/*.cpp)
add_executable(tpusim ${sources})
CMAKE
write_main() { # TEXT
  cat >"$project/sim/cli/main.cpp" <<CPP
#include <cstdio>
#include <cstring>
#include <unistd.h>
int main(int argc, char** argv) {
  char cwd[4096];
  std::printf("$1 in %s:", getcwd(cwd, sizeof cwd));
  for (int i = 1; i < argc; ++i) std::printf(" <%s>", argv[i]);
  std::printf("\\n");
  if (argc > 1 && std::strcmp(argv[1], "-") == 0)
    for (int c = std::getchar(); c != EOF; c = std::getchar()) std::putchar(c);
  return argc > 1 && std::strcmp(argv[1], "three") == 0 ? 3 : 0;
}
CPP
}
# Runs the launcher from another folder; leaves $out, $err, $rc.
call() {
  rc=0
  out=$(cd "$work" && "$project/tpusim" "$@" 2>"$work/err") || rc=$?
  err=$(cat "$work/err")
}

write_main first
call run 'two words'
check "standard output of the first call" "first in $work: <run> <two words>" "$out"
check "status of the first call" 0 "$rc"
[[ $err == *"building"* ]] || fail "the first call does not say that it builds: $err"

call three
check "the command's status" 3 "$rc"
check "a later call says nothing of its own" "" "$err"
check "standard input reaches the command" "first in $work: <->"$'\n'"text" "$(cd "$work" && echo text | "$project/tpusim" -)"

ln -s "$project/tpusim" "$work/link"
check "through a symbolic link" "first in $work: <x>" "$(cd "$work" && ./link x)"

write_main second
call
check "a changed source is built" "second in $work:" "$out"

# A file that goes must be noticed too: its folder is newer.
echo 'int unused();' >"$project/sim/cli/extra.cpp"
call
rm "$project/sim/cli/extra.cpp"
call
[[ $err == *"building"* ]] || fail "a deleted source is not noticed"
check "after a deleted source" "second in $work:" "$out"

write_main third
for i in 1 2 3; do (cd "$work" && "$project/tpusim" "$i" >"$work/out$i" 2>"$work/err$i") & done
wait
for i in 1 2 3; do check "caller $i of three at once" "third in $work: <$i>" "$(cat "$work/out$i")"; done
check "builds by three callers at once" 1 "$(cat "$work"/err[123] | grep -c building)"

echo 'this is not C++' >>"$project/sim/cli/main.cpp"
call run
check "status when the build fails" 70 "$rc"
check "standard output when the build fails" "" "$out"
[[ $err == *"error"*"the build failed"* || $err == *"the build failed"*"error"* ]] || fail "the log's end is not shown: $err"
call run
check "a failed build is tried again" 70 "$rc"
write_main fourth
call
check "after the repair" "fourth in $work:" "$out"

mv "$project" "$work/moved"
project=$work/moved
write_main fifth
call
check "a moved clone is configured anew" "fifth in $work:" "$out"

# Stand-ins for the package tools. One library counts as missing until apt-get has installed it.
tools=$work/tools
mkdir "$tools"
cat >"$tools/dpkg-query" <<TOOL
#!/bin/bash
[ "\${*: -1}" = libfmt-dev ] && [ ! -f "$work/installed" ] && exit 1
echo installed
TOOL
cat >"$tools/apt-get" <<TOOL
#!/bin/bash
echo "\$*" >>"$work/apt.log"
case "\$*" in
  *update*) touch "$work/updated" ;;
  *install*) [ -f "$work/updated" ] || { echo "E: Unable to locate package"; exit 100; }; touch "$work/installed" ;;
esac
TOOL
printf '#!/bin/bash\nexit 1\n' >"$tools/sudo"
printf '#!/bin/bash\necho 1000\n' >"$tools/id"
chmod +x "$tools"/*
PATH=$tools:$PATH

write_main sixth
call run
check "status without the right to install" 2 "$rc"
check "standard output without the right to install" "" "$out"
[[ $err == *"sudo apt-get update && sudo apt-get install -y libfmt-dev"* ]] || fail "the exact command is not shown: $err"

printf '#!/bin/bash\necho 0\n' >"$tools/id"
call run
check "as root, after installing" "sixth in $work: <run>" "$out"
check "calls of apt-get: install, lists, install" "install update install" \
  "$(grep -oE ' (install|update)' "$work/apt.log" | tr -d ' ' | paste -sd' ')"
grep -q 'install --no-install-recommends libfmt-dev$' "$work/apt.log" || fail "installs something else: $(cat "$work/apt.log")"

[ "$failed" -eq 0 ] || exit 1
echo "the launcher behaves"
