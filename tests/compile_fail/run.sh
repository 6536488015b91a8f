#!/bin/bash
# usage: run.sh SOURCE_DIR COMPILER
# Every *.cpp beside this script must compile as it stands; with -DFAULTS=1 the lines that the compiler complains about
# must be those directly below an `#if FAULTS`, each of them and no other: neither a mistake that compiles nor a missing
# header can pass for a caught one.
set -euo pipefail
source_dir=$1
compiler=$2
failed=0
count=0
for file in "$source_dir"/tests/compile_fail/*.cpp; do
  flags=(-std=c++20 -fsyntax-only -fno-diagnostics-color "-I$source_dir")
  if ! "$compiler" "${flags[@]}" "$file"; then
    echo "$file: does not compile without its faults"
    failed=1
  fi
  expected=$(awk '/^#if FAULTS$/ { print FNR + 1 }' "$file")
  count=$((count + $(wc -w <<<"$expected")))
  output=$("$compiler" "${flags[@]}" -DFAULTS=1 "$file" 2>&1 || true)
  found=$(sed -nE "s|^.*/$(basename "$file"):([0-9]+):[0-9]+: error:.*|\1|p" <<<"$output" | sort -nu)
  if [ "$expected" != "$found" ]; then
    printf '%s: must not compile on lines\n%s\nthe compiler complains about lines\n%s\n%s\n' "$file" "$expected" "$found" \
      "$output"
    failed=1
  fi
done
[ "$count" -gt 0 ] || { echo "no fault found in $source_dir/tests/compile_fail"; exit 1; }
[ "$failed" -eq 0 ] || exit 1
echo "$count mistakes do not compile"
