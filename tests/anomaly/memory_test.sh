#!/bin/bash
# usage: memory_test.sh SOURCE_DIR TPUSIM
# The bounds on memory, held by the system: address space (which is more than what is touched) is limited, so a command
# that needs more ends without its result. Address space of a sanitized program says nothing: not for those.
set -euo pipefail
source_dir=$1
tpusim=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# within MB STATUS ARGUMENT...: the command ends with this status in this much memory.
within() {
  local megabytes=$1 expected=$2 rc=0
  shift 2
  (ulimit -v $((megabytes * 1000)) && exec "$tpusim" "$@") >"$work/out" 2>"$work/err" || rc=$?
  if [ "$rc" != "$expected" ]; then
    echo "FAILED: tpusim $* in $megabytes MB: status $rc, expected $expected"
    tail -n 3 "$work/err"
    failed=1
  fi
}

quick=$source_dir/scenarios/quickstart.json
# The limit is felt at all: 6.5 MB do not hold the C++ library.
rc=0
(ulimit -v 6500 && exec "$tpusim" run "$quick" --no-verify) >/dev/null 2>&1 || rc=$?
[ "$rc" != 0 ] || { echo "FAILED: 6.5 MB were enough: the limit is not felt"; failed=1; }

within 300 0 run "$source_dir/scenarios/palm-540b.json" --no-verify --json
[ -s "$work/out" ] || { echo "FAILED: PaLM without a result"; failed=1; }

head -c 100000 /dev/zero | tr '\0' '[' >"$work/deep.json"
within 200 2 run "$work/deep.json"
head -c 300 "$quick" >"$work/cut.json"
within 200 2 run "$work/cut.json"
within 200 2 run "$quick" --set mesh.fsdp=1000000000000
within 200 2 run "$quick" --set 'cluster={"chip": "tpu-v5e", "topology": "1000000x1000000"}' --set mesh.fsdp=1000000000000
within 200 2 run "$quick" --set 'model={"preset": "llama2-7b", "layers": 1000000000}'
within 200 2 run "$quick" --set 'model={"preset": "llama2-7b", "embed": 1e300}'
within 200 2 run "$quick" --set training.global_batch=-16
within 200 2 run "$quick" --set model=llama2-7c

[ "$failed" = 0 ] && echo "memory: all within their bounds"
exit "$failed"
