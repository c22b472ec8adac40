// Tests the landing page in Chromium as people use it: on a wide and on a narrow screen,
// dark and light, with a keyboard, with a screen reader as far as axe-core can tell, and
// without styles. The page is the one that the tests of Go compare.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { after, before, test } from 'node:test';
import axe from 'axe-core';
import { chromium } from 'playwright-core';

const executablePath = [process.env.CHROMIUM, '/usr/bin/chromium-headless-shell', '/usr/bin/chromium'].find((path) => path && existsSync(path));

/** @type {import('playwright-core').Browser} */
let browser;
before(async () => {
  browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking'] });
});
after(() => browser.close());

/** Opens the page for the time of a test. */
async function open(t, width, colorScheme) {
  const page = await browser.newPage({ viewport: { width, height: 800 }, colorScheme });
  t.after(() => page.close());
  await page.goto(new URL('../testdata/overview.html', import.meta.url).href);
  return page;
}

/** The violations of WCAG 2.1 AA that axe-core finds, and where. */
async function violations(page) {
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate(() => window.axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'] }));
  return violations.map(({ id, nodes }) => ({ id, nodes: nodes.map((node) => `${node.target}: ${node.failureSummary}`) }));
}

/** By how many pixels a page can be scrolled to the side. */
const overflow = (page) => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

for (const width of [420, 1280]) {
  for (const scheme of ['dark', 'light']) {
    test(`${width} pixels, ${scheme}`, async (t) => {
      const page = await open(t, width, scheme);
      assert.deepEqual(await violations(page), []);
      assert.equal(await overflow(page), 0, 'pixels to scroll to the side');
    });
  }

  test(`${width} pixels, keyboard`, async (t) => {
    const page = await open(t, width, 'light');
    const wanted = await page.evaluate(() => [...document.querySelectorAll('a[href], [tabindex="0"]')].map((e) => e.outerHTML.slice(0, 200)));
    const reached = [];
    for (let i = 0; i < wanted.length; i++) {
      await page.keyboard.press('Tab');
      reached.push(await page.evaluate(() => document.activeElement.outerHTML.slice(0, 200)));
      assert.deepEqual(await page.evaluate(() => {
        const e = document.activeElement;
        const { top, bottom } = e.getBoundingClientRect();
        const { outlineStyle, outlineWidth } = getComputedStyle(e);
        return { seen: bottom > 0 && top < innerHeight, outlineStyle, outlineWidth };
      }), { seen: true, outlineStyle: 'solid', outlineWidth: '2px' }, `focus of ${reached.at(-1)}`);
    }
    assert.deepEqual(reached, wanted);
  });

  test(`${width} pixels, without styles`, async (t) => {
    const page = await open(t, width, 'light');
    const words = () => page.evaluate(() => document.body.innerText.split(/\s+/).filter(Boolean));
    const styled = await words();
    await page.evaluate(() => document.querySelectorAll('style, link[rel=stylesheet]').forEach((e) => e.remove()));
    assert.deepEqual(await words(), styled);
    assert.deepEqual(await violations(page), []);
  });
}

test('regions that are wider than the screen scroll by keyboard', async (t) => {
  const page = await open(t, 420, 'light');
  const plans = page.getByRole('region', { name: 'Plans' }).last();
  await plans.focus();
  await page.keyboard.press('ArrowRight');
  await page.waitForFunction((e) => e.scrollLeft > 0, await plans.elementHandle());
});

test('stock, deadlines and states are on a narrow screen', async (t) => {
  const page = await open(t, 420, 'light');
  for (const [table, column] of [
    ['Watches', 'In stock'], ['Saved configurations', 'Stock'], ['Plans', 'Stock'], ['Locations', 'In stock'],
    ['Accounts', 'Funded until (UTC)'], ['Open top-ups', 'Status'], ['Open top-ups', 'Rate lock'], ['Collectors', 'State'],
  ]) {
    const header = page.getByRole('region', { name: table, exact: true }).last().getByRole('columnheader', { name: column, exact: true });
    const { x, width } = await header.boundingBox();
    assert.ok(x + width <= 420, `${table}: ${column} ends at ${x + width} pixels`);
  }
});
