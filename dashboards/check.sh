#!/bin/sh
# Fails where the committed dashboards are not what the generator writes.
# Installs the generator's packages, as locked, where they are missing.
set -eu
cd "$(dirname "$0")/generator"
if [ ! -d node_modules ]; then
  npm ci --silent
fi
npm run --silent types
npm run --silent check
