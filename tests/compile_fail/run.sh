#!/bin/bash
# usage: run.sh SOURCE_DIR COMPILER
# Every *.cpp beside this script must compile as it stands and must not compile with -DFAULT=N for each N that it names;
# the first error must be at the faulty line, so that a missing header cannot pass for a caught mistake.
set -euo pipefail
source_dir=$1
compiler=$2
failed=0
count=0
for file in "$source_dir"/tests/compile_fail/*.cpp; do
  flags=(-std=c++20 -fsyntax-only "-I$source_dir")
  if ! "$compiler" "${flags[@]}" "$file"; then
    echo "$file: does not compile without a fault"
    failed=1
  fi
  while IFS=: read -r line fault; do
    count=$((count + 1))
    if output=$("$compiler" "${flags[@]}" "-DFAULT=$fault" "$file" 2>&1); then
      echo "$file:$((line + 1)): compiles, and must not"
      failed=1
    elif ! grep -m1 -E ': (fatal )?error:' <<<"$output" | grep -qF "$(basename "$file"):$((line + 1)):"; then
      printf '%s:%s: another error than the planted one:\n%s\n' "$file" "$((line + 1))" "$output"
      failed=1
    fi
  done < <(grep -nE '^#if FAULT == [0-9]+$' "$file" | sed -E 's/^([0-9]+):#if FAULT == ([0-9]+)$/\1:\2/')
done
[ "$count" -gt 0 ] || { echo "no fault found in $source_dir/tests/compile_fail"; exit 1; }
[ "$failed" -eq 0 ] || exit 1
echo "$count mistakes do not compile"
