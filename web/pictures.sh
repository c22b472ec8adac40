#!/usr/bin/env bash
# Makes the pictures of the landing page in docs/pictures from the pages that the tests
# compare, web/testdata/overview_*.html. Needs Chromium.
set -euo pipefail
cd "$(dirname "$0")/.."

browser=$(command -v chromium-headless-shell || command -v chromium)
profile=$(mktemp -d)
trap 'rm -rf "$profile"' EXIT
mkdir -p docs/pictures
rm -f docs/pictures/overview-*.png

declare -A scheme=([dark]=0 [light]=1)

# picture PAGE WIDTH dark|light
picture() {
  local file=docs/pictures/overview-$1-$2-$3.png size
  "$browser" --headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking \
    --user-data-dir="$profile" --hide-scrollbars --force-device-scale-factor=1 \
    --blink-settings="preferredColorScheme=${scheme[$3]}" --window-size="$2,1500" \
    --screenshot="$file" "file://$PWD/web/testdata/overview_$1.html"
  size=$(wc -c <"$file")
  if [ "$size" -ge 400000 ]; then
    echo "$file: $size bytes, want less than 400000" >&2
    return 1
  fi
}

picture demo 1280 light
picture demo 420 light
picture broken 420 dark
picture hostile 1280 dark
