#!/bin/bash
# usage: includes.sh SOURCE_DIR
# Compares every include of every room, and the dependencies in CMakeLists.txt, with rooms.txt. Each fault is named as
# file:line: what. Exit status 1 when there is one.
set -euo pipefail
cd "$1"

rooms=()
for room in sim models topologies reports; do [ ! -d "$room" ] || rooms+=("$room"); done
mapfile -t files < <(find "${rooms[@]}" -name node_modules -prune -o \
  \( -name '*.hpp' -o -name '*.cpp' -o -name '*.inl' \) -type f -print | LC_ALL=C sort)
[ ${#files[@]} -gt 0 ] || { echo "no source files under $1"; exit 1; }

awk '
  # The room of a path: the row of the table that is its folder or lies above it.
  function room_of(path,    room, best) {
    best = ""
    for (room in allowed)
      if (index(path, room "/") == 1 && length(room) > length(best)) best = room
    return best
  }
  function fault(text) {
    print FILENAME ":" FNR ": " text
    faults++
  }
  FILENAME ~ /rooms\.txt$/ {
    if ($0 ~ /^</) {
      prefix = substr($1, 2, length($1) - 2)
      heavy[prefix] = ""
      for (i = 2; i <= NF; i++) heavy[prefix] = heavy[prefix] " " $i
    } else if ($0 ~ /^[a-z]/) {
      room = $1
      sub(/:$/, "", room)
      allowed[room] = " "
      for (i = 2; i <= NF; i++) allowed[room] = allowed[room] $i " "
    }
    next
  }
  FNR == 1 {
    own = room_of(FILENAME)
    if (own == "") fault("this folder has no row in tests/layers/rooms.txt")
  }
  /^[ \t]*#[ \t]*include[ \t]*"/ {
    path = $0
    sub(/^[^"]*"/, "", path)
    sub(/".*$/, "", path)
    target = room_of(path)
    if (target == "")
      fault("\"" path "\" is not named from the root of the repository, or its room has no row in rooms.txt")
    else if (target != own && index(allowed[own], " " target " ") == 0)
      fault(own " may not include " target " (\"" path "\")")
  }
  /^[ \t]*#[ \t]*include[ \t]*</ {
    path = $0
    sub(/^[^<]*</, "", path)
    sub(/>.*$/, "", path)
    for (prefix in heavy) {
      if (index(path, prefix) != 1) continue
      count = split(heavy[prefix], folders, " ")
      fine = 0
      for (i = 1; i <= count; i++)
        if (index(FILENAME, folders[i] "/") == 1) fine = 1
      if (!fine) fault("<" path "> stays in" heavy[prefix])
    }
    if (path ~ /^boost\// && FILENAME ~ /\.hpp$/) fault("<" path "> stays in .cpp files: the header would burden every user")
  }
  END { exit faults > 0 }
' tests/layers/rooms.txt "${files[@]}" || failed=1

# The build must not link what the table does not allow, nor leave out what it allows.
awk '
  FILENAME ~ /rooms\.txt$/ {
    if ($0 ~ /^[a-z]/) {
      room = $1
      sub(/:$/, "", room)
      table[room] = ""
      for (i = 2; i <= NF; i++) { name = $i; sub(/^sim\//, "", name); table[room] = table[room] " " name }
    }
    next
  }
  /^tpusim_room\(/ { call = ""; start = FNR }
  start { call = call " " $0 }
  start && /\)[ \t]*$/ {
    gsub(/tpusim_room\(|\)/, " ", call)
    count = split(call, words, " ")
    folder = words[2]
    seen[folder] = 1
    links = ""
    section = ""
    for (i = 3; i <= count; i++) {
      if (words[i] == "DEPS" || words[i] == "LIBS") section = words[i]
      else if (section == "DEPS") links = links " " words[i]
    }
    if (!(folder in table)) { print FILENAME ":" start ": " folder " has no row in rooms.txt"; faults++ }
    else if (links != table[folder]) {
      print FILENAME ":" start ": " folder " links" links " but rooms.txt says" table[folder]
      faults++
    }
    start = 0
  }
  END {
    for (folder in table) if (!(folder in seen)) { print "CMakeLists.txt: no tpusim_room for " folder; faults++ }
    exit faults > 0
  }
' tests/layers/rooms.txt CMakeLists.txt || failed=1

[ -z "${failed-}" ] || exit 1
echo "${#files[@]} files keep to the table"
