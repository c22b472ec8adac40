#!/usr/bin/env bash
# Makes the pictures of the landing page in docs/pictures from the page that the tests
# compare, web/testdata/overview.html. Needs Chromium.
set -euo pipefail
cd "$(dirname "$0")/.."

browser=$(command -v chromium-headless-shell || command -v chromium)
profile=$(mktemp -d)
trap 'rm -rf "$profile"' EXIT
mkdir -p docs/pictures
rm -f docs/pictures/overview-*.png

declare -A scheme=([dark]=0 [light]=1)

# picture WIDTH HEIGHT dark|light
picture() {
  local file=docs/pictures/overview-$1-$3.png size
  "$browser" --headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking \
    --user-data-dir="$profile" --hide-scrollbars --force-device-scale-factor=1 \
    --blink-settings="preferredColorScheme=${scheme[$3]}" --window-size="$1,$2" \
    --screenshot="$file" "file://$PWD/web/testdata/overview.html"
  size=$(wc -c <"$file")
  if [ "$size" -ge 400000 ]; then
    echo "$file: $size bytes, want less than 400000" >&2
    return 1
  fi
}

picture 1280 1500 light
picture 420 1500 dark
