# Shared by ./tpusim, tests/run and .ci/run: installs missing Debian packages and builds. Sourced, not run.
# Everything here speaks on standard error or in a log, because standard output belongs to the command's result.

# What is needed, as PACKAGE or PACKAGE=COMMAND: where the command is there already, from wherever, so much the better.
# Compiler and build tools; topologies and routes; tensor kernels; JSON; command line; text; npm fetches the pinned chart
# library that the HTML report embeds (reports/embed.cmake).
tpusim_build_packages=(g++=g++ cmake=cmake ninja-build=ninja libboost-graph-dev libeigen3-dev nlohmann-json3-dev
  libcli11-dev libfmt-dev npm=npm)
# A chart library that is already on this machine takes the place of npm.
if [ -n "${TPUSIM_ECHARTS-}" ]; then tpusim_build_packages=("${tpusim_build_packages[@]/npm=npm/}"); fi
tpusim_test_packages=(doctest-dev)
tpusim_browser_packages=(chromium=chromium nodejs=node npm=npm)
tpusim_bench_packages=(libbenchmark-dev)
tpusim_lint_packages=(clang-format=clang-format clang-tidy=clang-tidy git=git)

say() { printf 'tpusim: %s\n' "$*" >&2; }

# missing_packages NAME...: prints those that are not installed.
missing_packages() {
  local package status
  for package in "$@"; do
    case $package in
      "") continue ;;
      *=*)
        if command -v "${package#*=}" >/dev/null 2>&1; then continue; fi
        package=${package%%=*}
        ;;
    esac
    status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$status" = installed ] || printf '%s\n' "$package"
  done
}

# need_packages LOG NAME...: installs what is missing; exits 2 with the exact command when it may not.
need_packages() {
  local log=$1
  shift
  # Not a Debian: trust that the user has the libraries; CMake names the first one that is not found.
  command -v dpkg-query >/dev/null 2>&1 || return 0
  local missing
  mapfile -t missing < <(missing_packages "$@")
  [ ${#missing[@]} -gt 0 ] || return 0
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null 2>&1; then
      cannot_install "${missing[@]}"
    elif [ -t 0 ] && [ -t 2 ]; then
      as_root=(sudo)
    else
      as_root=(sudo -n)  # without a terminal nobody can type a password
    fi
  fi
  say "installing: ${missing[*]}"
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -y -o DPkg::Lock::Timeout=300)
  # A fresh machine has no package lists, an old one stale lists: then the first try fails and the lists are fetched.
  if "${apt[@]}" install --no-install-recommends "${missing[@]}" </dev/null >>"$log" 2>&1; then return 0; fi
  if "${apt[@]}" update </dev/null >>"$log" 2>&1 &&
    "${apt[@]}" install --no-install-recommends "${missing[@]}" </dev/null >>"$log" 2>&1; then return 0; fi
  tail -n 5 "$log" >&2
  cannot_install "${missing[@]}"
}

cannot_install() {
  say "packages are missing and cannot be installed from here. Run this, then try again:"
  printf '\n  sudo apt-get update && sudo apt-get install -y %s\n\n' "$*" >&2
  exit 2
}

# build_jobs: as many compilers as there are cores, but no more than there are GiB of free memory.
build_jobs() {
  local cores memory
  cores=$(nproc 2>/dev/null || echo 1)
  memory=$(awk '/^MemAvailable:/ { print int($2 / 1048576) }' /proc/meminfo 2>/dev/null || echo "$cores")
  [ "${memory:-0}" -ge 1 ] || memory=1
  echo $((cores < memory ? cores : memory))
}

# configure ROOT DIR LOG OPTION...: a build folder of another source tree (a moved clone) is thrown away first.
configure() {
  local root=$1 dir=$2 log=$3
  shift 3
  local home
  home=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$dir/CMakeCache.txt" 2>/dev/null || true)
  if [ -n "$home" ] && [ "$home" != "$root" ]; then rm -rf "$dir/CMakeCache.txt" "$dir/CMakeFiles"; fi
  cmake -S "$root" -B "$dir" -G Ninja "-DTPUSIM_ECHARTS=${TPUSIM_ECHARTS-}" "$@" </dev/null >>"$log" 2>&1
}

# build DIR LOG TARGET...
build() {
  local dir=$1 log=$2
  shift 2
  cmake --build "$dir" --parallel "$(build_jobs)" --target "$@" </dev/null >>"$log" 2>&1
}
