#!/bin/bash
# usage: file_sizes.sh SOURCE_DIR
# Lists headers above 250 lines and sources above 400 as warnings, since such a file often has two reasons to change;
# fails for a file above 800.
set -euo pipefail
cd "$1"
rooms=()
for room in sim models topologies reports tests; do [ ! -d "$room" ] || rooms+=("$room"); done
mapfile -t files < <(find "${rooms[@]}" -name node_modules -prune -o \
  \( -name '*.hpp' -o -name '*.cpp' -o -name '*.inl' \) -type f -print | LC_ALL=C sort)
[ ${#files[@]} -gt 0 ] || { echo "no source files under $1"; exit 1; }
failed=0
for file in "${files[@]}"; do
  lines=$(wc -l <"$file")
  case $file in
    *.hpp) habit=250 ;;
    *) habit=400 ;;
  esac
  if [ "$lines" -gt 800 ]; then
    echo "$file:800: error: $lines lines; split it"
    failed=1
  elif [ "$lines" -gt "$habit" ]; then
    echo "$file:$habit: warning: $lines lines, more than the usual $habit"
  fi
done
[ "$failed" -eq 0 ] || exit 1
echo "${#files[@]} files are at most 800 lines long"
