#!/usr/bin/env bash
# Makes the pictures of the landing page in docs/pictures from the page that the tests
# compare, web/testdata/overview_demo.html. Needs Chromium.
set -euo pipefail
cd "$(dirname "$0")/.."

browser=$(command -v chromium-headless-shell || command -v chromium)
profile=$(mktemp -d)
trap 'rm -rf "$profile"' EXIT
mkdir -p docs/pictures

# picture NAME WIDTH HEIGHT SCHEME, where the color scheme is 0 for dark and 1 for light
picture() {
  "$browser" --headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking \
    --user-data-dir="$profile" --hide-scrollbars --force-device-scale-factor=1 \
    --blink-settings="preferredColorScheme=$4" --window-size="$2,$3" \
    --screenshot="docs/pictures/$1.png" "file://$PWD/web/testdata/overview_demo.html"
  size=$(wc -c <"docs/pictures/$1.png")
  if [ "$size" -ge 400000 ]; then
    echo "docs/pictures/$1.png: $size bytes, want less than 400000" >&2
    return 1
  fi
}

picture overview-light 1280 1500 1
picture overview-dark 420 1500 0
