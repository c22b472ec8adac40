#!/bin/sh
# Fails if the committed dashboards are out of date. Installs the locked packages of the
# generator if they are missing.
set -eu
cd "$(dirname "$0")/generator"
if [ ! -d node_modules ]; then
  npm ci --silent
fi
npm run --silent types
npm run --silent check
