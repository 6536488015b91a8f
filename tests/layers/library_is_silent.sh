#!/bin/bash
# usage: library_is_silent.sh SOURCE_DIR [BUILD_DIR]
# Only sim/cli prints and ends the process; the library has no mutable globals and runs nothing before main. Reads the
# sources, and the room libraries in BUILD_DIR where they are built without instrumentation. Faults as file:line: what.
set -euo pipefail
cd "$1"
build_dir=${2-}
failed=0

rooms=()
for room in sim models topologies reports; do [ ! -d "$room" ] || rooms+=("$room"); done
mapfile -t files < <(find "${rooms[@]}" -name node_modules -prune -o -path sim/cli -prune -o \
  \( -name '*.hpp' -o -name '*.cpp' -o -name '*.inl' \) -type f -print | LC_ALL=C sort)
[ ${#files[@]} -gt 0 ] || { echo "no source files under $1"; exit 1; }

awk '
  function fault(what) {
    print FILENAME ":" FNR ": " what ": " $0
    faults++
  }
  # The line without comments and texts, so that prose and templates count for nothing.
  function code(line,    out, c, two, i, n, close_at, delimiter) {
    if (raw == "" && !in_comment && line !~ /["\x27\/]/) return line
    if (raw == "" && !in_comment && line ~ /^[ \t]*\/\//) return ""
    out = ""
    n = length(line)
    for (i = 1; i <= n; i++) {
      if (raw != "") {
        close_at = index(substr(line, i), raw)
        if (close_at == 0) return out
        i += close_at + length(raw) - 2
        raw = ""
        continue
      }
      two = substr(line, i, 2)
      c = substr(line, i, 1)
      if (in_comment) {
        if (two == "*/") { in_comment = 0; i++ }
      } else if (two == "//") {
        return out
      } else if (two == "/*") {
        in_comment = 1
        i++
      } else if (two == "R\"") {
        delimiter = substr(line, i + 2)
        sub(/\(.*$/, "", delimiter)
        raw = ")" delimiter "\""
        i += 2 + length(delimiter)
        out = out "\"\""
      } else if (c == "\"" || (c == "\x27" && substr(line, i - 1, 1) !~ /[0-9a-fA-F]/)) {
        for (i++; i <= n && substr(line, i, 1) != c; i++)
          if (substr(line, i, 1) == "\\") i++
        out = out c c
      } else {
        out = out c
      }
    }
    return out
  }
  FNR == 1 { in_comment = 0; raw = "" }
  {
    text = code($0)
    if (text ~ /std::(cout|cerr|clog|wcout|wcerr|cin)([^A-Za-z0-9_]|$)/) fault("standard stream")
    if (text ~ /#[ \t]*include[ \t]*<iostream>/) fault("<iostream>, whose streams are globals")
    if (text ~ /(^|[^A-Za-z0-9_])(printf|fprintf|vprintf|vfprintf|puts|fputs|putchar|perror)[ \t]*\(/) fault("prints")
    if (text ~ /fmt::print[ \t]*\(|std::print(ln)?[ \t]*\(/) fault("prints")
    if (text ~ /(^|[^A-Za-z0-9_.>])(exit|_Exit|quick_exit|abort|terminate)[ \t]*\(/) fault("ends the process")
    if (text ~ /(^|[^A-Za-z0-9_])assert[ \t]*\(/) fault("assert ends the process; use TPUSIM_CHECK")
    if (text ~ /(^|[^A-Za-z0-9_])(getenv|setlocale|srand|rand)[ \t]*\(/) fault("hidden input or global state")
    if (text ~ /(^|[^A-Za-z0-9_])thread_local([^A-Za-z0-9_]|$)/) fault("a global per thread")
    # A static that is not constant; one with a parenthesis before its value is a function.
    rest = text
    while (match(rest, /(^|[;{}])[ \t]*(inline[ \t]+)?static[ \t]/)) {
      rest = substr(rest, RSTART + RLENGTH)
      head = rest
      sub(/[={;].*$/, "", head)
      if (head !~ /(^|[^A-Za-z0-9_])(const|constexpr|constinit const)([^A-Za-z0-9_]|$)/ && head !~ /\(/ && rest ~ /[={;]/)
        fault("mutable static")
    }
  }
  END { exit faults > 0 }
' "${files[@]}" || failed=1

if [ -n "$build_dir" ]; then
  libraries=()
  for library in "$build_dir"/libtpusim_*.a; do
    case $library in
      */libtpusim_cli.a) ;;
      *) [ ! -f "$library" ] || libraries+=("$library") ;;
    esac
  done
  [ ${#libraries[@]} -gt 0 ] || { echo "no room library in $build_dir"; exit 1; }
  for library in "${libraries[@]}"; do
    # .init_array: a constructor that runs before main. Writable data: .data and .bss, and their thread-local kind; the
    # .data.rel.ro sections are constants that hold addresses. A static inside a function carries "()::" or a guard:
    # the source check above sees to it that it is constant. Boost.Graph's headers bring a constructed constant of their
    # own into each file that includes its algorithms; that one is let pass.
    { objdump -h "$library"; echo SYMBOLS; objdump -tC "$library"; } 2>/dev/null | awk -v lib="${library##*/}" '
      /file format/ { member = $1; sub(/:$/, "", member) }
      $2 ~ /^\.(init_array|ctors)/ { constructed[member] = 1 }
      / O \.bss/ && /guard variable for boost::/ { boost[member] = 1 }  # that constant, optimized away but for its guard
      / O \.(data|bss|tdata|tbss)/ && !/ \.data\.rel\.ro/ && !/guard variable for/ && !/\)( const)?::/ && !/DW\.ref\./ {
        name = $0
        sub(/^.*\t[0-9a-f]+ +/, "", name)
        if (name ~ /^boost::/) { boost[member] = 1; next }
        print lib "(" member "): writable global: " name
        faults++
      }
      END {
        for (member in constructed)
          if (!(member in boost)) { print lib "(" member "): a static constructor runs before main"; faults++ }
        exit faults > 0
      }' || failed=1
  done
fi

[ "$failed" -eq 0 ] || exit 1
echo "${#files[@]} files print nothing, end nothing and keep no globals"
