// Writes the dashboards to the parent directory.

import { writeFileSync } from 'node:fs';
import { stock } from './stock.js';
import { accounts } from './accounts.js';
import { status } from './status.js';
import { one } from './plan.js';

/** JSON in which an object or a list of plain values is one line. */
const toText = (value: unknown) => JSON.stringify(value, null, 1).replace(/([{[])\n\s+([^{}[\]]+?)\n\s+([}\]])/g, (_, first, inside, last) => first + inside.replace(/\n\s+/g, ' ') + last);

for (const build of [stock, accounts, status, one]) {
  const dashboard = build();
  writeFileSync(new URL(`../../${dashboard.uid}.json`, import.meta.url), `${toText(dashboard)}\n`);
}
