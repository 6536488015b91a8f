#!/bin/bash
# usage: planted_violations.sh SOURCE_DIR
# Shows that each layer check can fail: plants one violation at a time in a copy of the sources and expects the check to
# name its file and line.
set -euo pipefail
source_dir=$1
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
failed=0

parts=(CMakeLists.txt sim models topologies reports tests/layers)
mkdir -p "$copy/tests"
for part in "${parts[@]}"; do
  if [ -e "$source_dir/$part" ]; then cp -r "$source_dir/$part" "$copy/$part"; fi
done

# Takes back what was planted last.
planted=
fresh_copy() {
  [ -n "$planted" ] || return 0
  if [ -e "$source_dir/$planted" ]; then
    cp "$source_dir/$planted" "$copy/$planted"
  else
    rm -f "$copy/$planted"
    rmdir -p --ignore-fail-on-non-empty "$(dirname "$copy/$planted")" 2>/dev/null || true
  fi
  planted=
}

# expect_fault NAME CHECK EXPECTED_TEXT [ARGUMENT...]: the check must fail and print the expected text.
expect_fault() {
  local name=$1 check=$2 expected=$3 output
  shift 3
  if output=$(bash "$copy/tests/layers/$check.sh" "$copy" "$@" 2>&1); then
    echo "$check did not notice: $name"
    failed=1
  elif ! grep -qF -- "$expected" <<<"$output"; then
    printf '%s noticed "%s", but did not say "%s":\n%s\n' "$check" "$name" "$expected" "$output"
    failed=1
  fi
}

# plant FILE TEXT...: appends lines and leaves the number of the last one in $line.
plant() {
  planted=$1
  local file=$copy/$1
  shift
  mkdir -p "$(dirname "$file")"
  printf '%s\n' "$@" >>"$file"
  line=$(wc -l <"$file")
}

plant_include() { # FILE INCLUDE EXPECTED
  fresh_copy
  plant "$1" "#include $2"
  expect_fault "$1 includes $2" includes "$1:$line: $3"
}
plant_include sim/base/units.hpp '"sim/ir/op.hpp"' 'sim/base may not include sim/ir'
plant_include sim/numeric/planted.cpp '"sim/timing/timing.hpp"' 'sim/numeric may not include sim/timing'
plant_include sim/timing/deep/planted.cpp '"sim/numeric/x.hpp"' 'sim/timing may not include sim/numeric'
plant_include sim/run/planted.cpp '"sim/spmd/mesh.hpp"' 'sim/run may not include sim/spmd'
plant_include sim/ir/planted.cpp '"types.hpp"' '"types.hpp" is not named from the root'
plant_include sim/engine/planted.cpp '<nlohmann/json.hpp>' '<nlohmann/json.hpp> stays in'
plant_include sim/numeric/planted.cpp '<Eigen/Dense>' '<Eigen/Dense> stays in'
plant_include topologies/planted.hpp '<boost/graph/adjacency_list.hpp>' '<boost/graph/adjacency_list.hpp> stays in .cpp'

fresh_copy
plant sim/attic/planted.cpp 'int f();'
expect_fault "a room without a row" includes "sim/attic/planted.cpp:1: this folder has no row"

fresh_copy
planted=CMakeLists.txt
sed -i 's/^tpusim_room(engine sim\/engine DEPS base)/tpusim_room(engine sim\/engine DEPS base ir)/' "$copy/CMakeLists.txt"
expect_fault "engine links ir" includes "sim/engine links base ir but rooms.txt says base"

plant_code() { # FILE CODE EXPECTED
  fresh_copy
  plant "$1" "$2"
  expect_fault "$2" library_is_silent "$1:$line: $3"
}
plant_code sim/ir/planted.cpp 'void f() { std::cout << 1; }' 'standard stream'
plant_code models/planted.cpp 'void f() { printf("%d", 1); }' 'prints'
plant_code reports/planted.cpp 'void f() { fmt::print("x"); }' 'prints'
plant_code sim/run/planted.cpp 'void f() { std::exit(1); }' 'ends the process'
plant_code sim/plan/planted.cpp 'void f() { abort(); }' 'ends the process'
plant_code sim/spmd/planted.cpp 'int f() { static int calls = 0; return ++calls; }' 'mutable static'
plant_code sim/engine/planted.cpp '  static std::map<int, int> cache;' 'mutable static'
plant_code topologies/planted.cpp 'thread_local int depth = 0;' 'a global per thread'
plant_code sim/fabric/planted.cpp 'void f() { assert(1 == 1); }' 'assert ends the process'
plant_code sim/fabric/planted.cpp '/* "text */ int f() { return std::rand(); }' 'hidden input or global state'

# Prose and texts are not code.
fresh_copy
plant sim/ir/planted.cpp '// never std::cout, printf( or exit(' 'const char* kText = "abort(); std::cerr";' \
  'const char* kTemplate = R"html(' 'console.log(exit(1)); std::cout' ')html";' 'static const int kOne = 1;' \
  'static int helper(int x) { return x; }' "constexpr char kQuote = '\"'; constexpr long kLong = 1'000'000;"
bash "$copy/tests/layers/library_is_silent.sh" "$copy" || { echo "prose was taken for code"; failed=1; }

# Compiled globals: one with a constructor, one plain, one constant that must pass.
compile_library() { # CODE
  mkdir -p "$copy/lib"
  rm -f "$copy"/lib/*
  printf '%s\n' "$1" >"$copy/lib/planted.cpp"
  "${CXX:-g++}" -std=c++20 -O1 -c "$copy/lib/planted.cpp" -o "$copy/lib/planted.o"
  ar rcs "$copy/lib/libtpusim_planted.a" "$copy/lib/planted.o"
}
compile_library '#include <string>
std::string name = "a name that is too long for the short string buffer";'
expect_fault "a static constructor" library_is_silent \
  "libtpusim_planted.a(planted.o): a static constructor runs before main" "$copy/lib"
compile_library 'namespace tpusim { int calls = 0; int* next() { return &calls; } }'
expect_fault "a plain global" library_is_silent \
  "libtpusim_planted.a(planted.o): writable global: tpusim::calls" "$copy/lib"
compile_library '#include <string>
const std::string& name() { static const std::string kName = "fine"; return kName; }
extern const char* const kNames[] = {"a", "b"};'
bash "$copy/tests/layers/library_is_silent.sh" "$copy" "$copy/lib" || { echo "constants were taken for globals"; failed=1; }

fresh_copy
for ((i = 0; i < 801; i++)); do echo "// $i"; done >"$copy/sim/ir/planted.cpp"
planted=sim/ir/planted.cpp
expect_fault "a file of 801 lines" file_sizes "sim/ir/planted.cpp:800: error: 801 lines"
fresh_copy
for ((i = 0; i < 251; i++)); do echo "// $i"; done >"$copy/sim/ir/planted.hpp"
output=$(bash "$copy/tests/layers/file_sizes.sh" "$copy")
grep -qF "sim/ir/planted.hpp:250: warning: 251 lines" <<<"$output" || { echo "no warning for a long header"; failed=1; }

[ "$failed" -eq 0 ] || exit 1
echo "every planted violation was named"
