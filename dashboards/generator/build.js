// Writes the dashboards to the parent directory. With --check it fails if the committed
// files are out of date instead.

import { readFileSync, writeFileSync } from 'node:fs';
import { stock } from './stock.js';
import { accounts } from './accounts.js';
import { status } from './status.js';

let outdated = 0;
for (const build of [stock, accounts, status]) {
  const dashboard = build();
  const file = new URL(`../${dashboard.uid}.json`, import.meta.url);
  const text = `${JSON.stringify(dashboard, null, 2)}\n`;
  if (!process.argv.includes('--check')) {
    writeFileSync(file, text);
    continue;
  }
  let committed = '';
  try {
    committed = readFileSync(file, 'utf8');
  } catch {
    // A missing file is out of date.
  }
  if (committed !== text) {
    console.error(`dashboards/${dashboard.uid}.json is out of date: run npm run build in dashboards/generator`);
    outdated = 1;
  }
}
process.exitCode = outdated;
