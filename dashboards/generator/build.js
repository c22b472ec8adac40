// Writes the dashboards next to this directory, or with --check tells whether
// what is committed is what would be written.

import { readFileSync, writeFileSync } from 'node:fs';
import { stock } from './stock.js';
import { accounts } from './accounts.js';
import { status } from './status.js';

let behind = 0;
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
    // A file that is not there is behind like any other.
  }
  if (committed !== text) {
    console.error(`dashboards/${dashboard.uid}.json is behind: run npm run build in dashboards/generator`);
    behind = 1;
  }
}
process.exitCode = behind;
