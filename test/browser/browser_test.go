// Package browser tests the landing page in Chromium as people use it: on a wide and on a
// narrow screen, dark and light, and with a keyboard. It also makes the pictures of the documents.
package browser

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/repo"
)

func TestMain(m *testing.M) { simtest.Main(m) }

// screens are the widths of a phone and of a desktop, in pixels.
var screens = []int64{420, 1280}

// page is the landing page in a tab of its own.
type page struct {
	t   *testing.T
	ctx context.Context
}

// open opens an address in a browser of its own, with dark or light colours.
func open(t *testing.T, url string, width, height int64, colours string) page {
	t.Helper()
	limited, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	allocator, stop := chromedp.NewExecAllocator(limited, append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(repo.Program(t, "chromium-headless-shell")), // Debian's package of that name
		chromedp.NoSandbox, // root has none
		chromedp.DisableGPU,
	)...)
	t.Cleanup(stop)
	ctx, stop := chromedp.NewContext(allocator)
	t.Cleanup(stop)
	p := page{t, ctx}
	p.run(chromedp.EmulateViewport(width, height), chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: colours}},
		})
		return err
	}), chromedp.Navigate(url))
	return p
}

// openOverview opens the page that the tests of web compare.
func openOverview(t *testing.T, width int64, colours string) page {
	t.Helper()
	return open(t, "file://"+repo.Path(t, "web/testdata/overview.html"), width, 800, colours)
}

func (p page) run(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, steps...); err != nil {
		p.t.Fatal(err)
	}
}

// eval returns the value of a JavaScript expression in a page.
func eval[T any](p page, expression string) T {
	p.t.Helper()
	value, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		p.t.Fatal(err)
	}
	return value
}

// await waits until a JavaScript expression holds.
func (p page) await(expression string) {
	p.t.Helper()
	if _, err := chromedp.Run(p.ctx, chromedp.Poll[bool](expression, chromedp.WithPollingTimeout(3*time.Minute))); err != nil {
		p.t.Fatal(err)
	}
}

// faults lists what WCAG 2.1 AA forbids and a program can find: contrast of text below
// 4.5 (large text 3), elements without a name, duplicate ids, and unlabelled tables.
const faults = `(() => {
	const luminance = (c) => {
		const [r, g, b] = c.slice(0, 3).map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4 });
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const parse = (text) => text.match(/[\d.]+/g).map(Number);
	const background = (e) => {
		for (; e; e = e.parentElement) {
			const c = parse(getComputedStyle(e).backgroundColor);
			if (c.length === 3 || c[3] === 1) return c;
		}
		return matchMedia('(prefers-color-scheme: dark)').matches ? [18, 18, 18] : [255, 255, 255];
	};
	const found = [];
	const report = (e, what) => found.push(what + ': ' + e.outerHTML.slice(0, 120));
	for (const e of document.querySelectorAll('body *')) {
		if (![...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.data.trim()) || !e.getClientRects().length) continue;
		const style = getComputedStyle(e);
		const [a, b] = [luminance(parse(style.color)), luminance(background(e))].sort((x, y) => y - x);
		const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 700);
		const ratio = (a + 0.05) / (b + 0.05);
		if (ratio < (large ? 3 : 4.5)) report(e, 'contrast ' + ratio.toFixed(2));
	}
	const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);
	for (const e of document.querySelectorAll('[id]')) if (ids.filter((id) => id === e.id).length > 1) report(e, 'id twice');
	for (const e of document.querySelectorAll('a[href], button')) if (!e.textContent.trim() && !e.ariaLabel) report(e, 'no name');
	for (const e of document.querySelectorAll('[role=region], [tabindex]')) {
		if (!e.ariaLabel && !document.getElementById(e.getAttribute('aria-labelledby'))) report(e, 'no name');
	}
	for (const e of document.querySelectorAll('table')) if (!e.querySelector('th')) report(e, 'no header');
	for (const e of document.querySelectorAll('img')) if (!e.alt) report(e, 'no text');
	if (!document.documentElement.lang) report(document.documentElement, 'no language');
	if (!document.title) report(document.head, 'no title');
	if (document.querySelectorAll('h1').length !== 1) report(document.body, 'not one h1');
	return found;
})()`

// TestPage looks for faults of accessibility, and for text that is outside the screen.
func TestPage(t *testing.T) {
	for _, width := range screens {
		for _, scheme := range []string{"dark", "light"} {
			t.Run(fmt.Sprintf("%d pixels, %s", width, scheme), func(t *testing.T) {
				p := openOverview(t, width, scheme)
				simtest.AssertEqual(t, "faults", eval[[]string](p, faults), []string{})
				simtest.AssertEqual(t, "pixels to scroll to the side",
					eval[int](p, `document.documentElement.scrollWidth - document.documentElement.clientWidth`), 0)
			})
		}
	}
}

// focus is where the keyboard is.
type focus struct {
	Element       string
	Seen          bool
	Style, Stroke string
}

// TestKeyboard reaches everything with Tab, in the order of the page, and always sees where it is.
func TestKeyboard(t *testing.T) {
	for _, width := range screens {
		t.Run(fmt.Sprintf("%d pixels", width), func(t *testing.T) {
			p := openOverview(t, width, "light")
			var got, want []focus
			for _, element := range eval[[]string](p, `[...document.querySelectorAll('a[href], [tabindex="0"]')].map((e) => e.outerHTML.slice(0, 200))`) {
				want = append(want, focus{element, true, "solid", "2px"})
				p.run(chromedp.KeyEvent(kb.Tab))
				got = append(got, eval[focus](p, `(() => {
					const e = document.activeElement;
					const { top, bottom } = e.getBoundingClientRect();
					const { outlineStyle, outlineWidth } = getComputedStyle(e);
					return { Element: e.outerHTML.slice(0, 200), Seen: bottom > 0 && top < innerHeight, Style: outlineStyle, Stroke: outlineWidth };
				})()`))
			}
			simtest.AssertEqual(t, "focus after each Tab", got, want)
		})
	}
}

// TestScroll scrolls a region that is wider than the screen with the keyboard.
func TestScroll(t *testing.T) {
	p := openOverview(t, 420, "light")
	eval[any](p, `document.querySelector('[role=region][aria-label="Plans"]').focus()`)
	p.run(chromedp.KeyEvent(kb.ArrowRight))
	p.await(`document.activeElement.scrollLeft > 0`)
}

// brokenWords are the words of letters, and the dates, that a cell breaks into lines.
const brokenWords = `[...document.querySelectorAll('tbody th, tbody td')].flatMap((cell) => {
	const found = [], texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
	for (let text; text = texts.nextNode();) {
		for (const word of text.data.matchAll(/(?<!\S)([A-Za-z]+|\d+-\d+-\d+.*)(?!\S)/g)) {
			const range = document.createRange();
			range.setStart(text, word.index);
			range.setEnd(text, word.index + word[0].length);
			if (new Set([...range.getClientRects()].map((r) => r.top)).size > 1) found.push(word[0]);
		}
	}
	return found;
})`

// TestNarrowScreen sees stock, deadlines and states without scrolling to the side.
func TestNarrowScreen(t *testing.T) {
	p := openOverview(t, 420, "light")
	simtest.AssertEqual(t, "broken words", eval[[]string](p, brokenWords), []string{})
	for table, columns := range map[string][]string{
		"Watches": {"In stock"}, "Saved configurations": {"Stock"}, "Plans": {"Stock anywhere"}, "Locations": {"Of these in stock"},
		"Accounts": {"Funded until (UTC)"}, "Open top-ups": {"Status", "Rate lock"}, "Collectors": {"State"},
	} {
		ends := eval[map[string]float64](p, fmt.Sprintf(`Object.fromEntries(
			[...[...document.querySelectorAll('[role=region][aria-label=%q]')].at(-1).querySelectorAll('th')].map(
				(e) => [e.innerText.trim(), e.getBoundingClientRect().right]))`, table))
		for _, column := range columns {
			if end, ok := ends[column]; !ok || end > 420 {
				t.Errorf("%s: %s ends at %.0f pixels, of %v", table, column, end, slices.Sorted(maps.Keys(ends)))
			}
		}
	}
}

// loaded says whether a dashboard's panels are there and none waits for data.
const loaded = `document.querySelector('[data-viz-panel-key], .react-grid-item') &&
	!document.querySelector('[aria-label="Panel loading bar"], [data-testid="Spinner"]')`

// TestPictures makes the pictures of the documents, if -update is given: of the demo's landing page and, if
// the variable GRAFANA has the address of one with the dashboards and a month of data, of a week of these.
func TestPictures(t *testing.T) {
	if !*simtest.Update {
		t.Skip("make pictures")
	}
	demo := simtest.StartProcess(t, "--demo")
	demo.WaitReady()
	open(t, demo.URL, 1280, 1500, "light").take("overview")
	for _, path := range []string{"stock?", "plan?var-plan=ryzen-9-9950x&", "accounts?", "status?"} {
		if os.Getenv("GRAFANA") == "" {
			continue
		}
		p := open(t, os.Getenv("GRAFANA")+"/d/server-rental-"+path+"from=now-7d&to=now&kiosk", 1440, 900, "dark")
		p.await(loaded)
		p.run(chromedp.Sleep(3 * time.Second)) // panels appear after their data
		name, _, _ := strings.Cut(path, "?")
		p.take("dashboard-" + name)
	}
}

// take writes the picture that the screen shows.
func (p page) take(name string) {
	p.t.Helper()
	picture, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Fatal(err)
	}
	simtest.WriteFile(p.t, repo.Path(p.t, "docs/pictures/"+name+".png"), string(picture))
}
