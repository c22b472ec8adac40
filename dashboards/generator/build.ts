// Writes the dashboards to the parent directory.

import { writeFileSync } from 'node:fs';
import { stock } from './stock.js';
import { accounts } from './accounts.js';
import { status } from './status.js';
import { one } from './plan.js';

for (const build of [stock, accounts, status, one]) {
  const dashboard = build();
  writeFileSync(new URL(`../../${dashboard.uid}.json`, import.meta.url), `${JSON.stringify(dashboard, null, 1)}\n`);
}
