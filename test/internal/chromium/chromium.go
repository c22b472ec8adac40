// Package chromium runs Chromium without a screen.
package chromium

import (
	"context"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// Program is the name of the browser, as in Debian's package of that name.
const Program = "chromium-headless-shell"

// Start returns a context of chromedp with a browser, which ends with ctx.
func Start(ctx context.Context) (context.Context, context.CancelFunc) {
	allocator, stop := chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(Program),
		chromedp.NoSandbox, // root has none
		chromedp.DisableGPU,
	)...)
	browser, cancel := chromedp.NewContext(allocator)
	return browser, func() { cancel(); stop() }
}

// Screen sets the width in pixels and the colours, "dark" or "light".
func Screen(width, height int64, colours string) chromedp.Action[chromedp.Void] {
	return chromedp.Steps(
		chromedp.EmulateViewport(width, height),
		chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
			_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: colours}},
			})
			return err
		}),
	)
}
