// Makes the pictures of the dashboards in docs/pictures from a running Grafana, such as
// that of the compose demo: node out/pictures.js http://127.0.0.1:3000 [TO], where TO is the
// end of the time range in Unix milliseconds. Needs Chromium.

import { execFileSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { chromium, type Page } from 'playwright-core';
import { uids } from './lib/dashboard.js';

const [grafana = 'http://127.0.0.1:3000', end = String(Date.now())] = process.argv.slice(2);
const folder = fileURLToPath(new URL('../../../docs/pictures/', import.meta.url));
const maxBytes = 400_000;

/** Waits until no panel has been loading for three seconds. */
async function loaded(page: Page) {
  await page.waitForLoadState('networkidle', { timeout: 180_000 });
  const end = Date.now() + 180_000;
  for (let calm = 0; calm < 12; calm++) {
    await page.waitForTimeout(250);
    if (await page.locator('[aria-label="Panel loading bar"], [data-testid="Spinner"]').count() > 0) calm = 0;
    if (Date.now() > end) throw new Error(`${page.url()}: still loading after 3 minutes`);
  }
}

async function picture(page: Page, name: string) {
  const path = `${folder}${name}.png`;
  await page.screenshot({ path });
  // 256 colours are enough for a dashboard.
  execFileSync('pngquant', ['--force', '--output', path, '--speed', '1', '256', path]);
  const { size } = statSync(path);
  if (size >= maxBytes) throw new Error(`${path}: ${size} bytes, want less than ${maxBytes}`);
}

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium-headless-shell',
  args: ['--no-sandbox', '--disable-gpu', '--hide-scrollbars', '--disable-background-networking'],
});
try {
  for (const [name, uid] of Object.entries(uids)) {
    const page = await browser.newPage({ viewport: { width: 1440, height: 900 }, timezoneId: 'UTC', colorScheme: 'dark' });
    const from = Number(end) - 7 * 86_400_000;
    await page.goto(`${grafana}/d/${uid}?from=${from}&to=${end}&theme=dark${name === 'plan' ? '&var-plan=gpu-l40s' : ''}`);
    await loaded(page);
    await picture(page, `dashboard-${name}`);
    await page.close();
  }
} finally {
  await browser.close();
}
