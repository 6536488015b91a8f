#!/bin/bash
# run.sh REPORT_SAMPLE FOLDER: opens the sample reports in real Chromium (report.test.mjs says what is checked).
# playwright-core stays at a version that runs on Node 18, which is what Debian 12 has.
# Exit status: 0 all checks hold, 1 one does not, 77 skipped because chromium or node is not installed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
sample=$1
folder=$2

chromium=${CHROMIUM:-}
for name in chromium chromium-browser google-chrome; do
  [ -n "$chromium" ] || chromium=$(command -v "$name" || true)
done
if [ -z "$chromium" ]; then
  echo "skipped: chromium is not installed (Debian: apt-get install chromium)"
  exit 77
fi
if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
  echo "skipped: node and npm are not installed (Debian: apt-get install nodejs npm)"
  exit 77
fi

mkdir -p "$folder"
cp "$here"/package.json "$here"/package-lock.json "$here"/*.mjs "$folder"
cd "$folder"
if ! cmp -s package-lock.json installed-lock.json; then
  npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
  cp package-lock.json installed-lock.json
fi
"$sample" "$folder"
CHROMIUM="$chromium" node --test --test-reporter=spec report.test.mjs
