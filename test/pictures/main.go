// Pictures makes the pictures of the documents: of the demo's landing page and, if the address of
// a Grafana with the dashboards is given, of the dashboards.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/chromedp/chromedp"

	"github.com/server-rental-exporter/server_rental_exporter/exporter"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/chromium"
)

const (
	address = "127.0.0.1:10175"
	// wait is a bound, for a start on a slow machine and for a dashboard with all its queries.
	wait = 3 * time.Minute
)

var (
	folder  = kingpin.Arg("folder", "Directory of the pictures.").Required().ExistingDir()
	grafana = kingpin.Flag("grafana", "Address of a Grafana with the dashboards and a month of data.").String()
)

func main() {
	kingpin.Parse()
	kingpin.FatalIfError(pictures(), "") // not by package log, which is the demo's
}

func pictures() error {
	ctx := context.Background()
	if err := overview(ctx); err != nil {
		return fmt.Errorf("overview: %w", err)
	}
	if *grafana == "" {
		return nil
	}
	for _, name := range []string{"stock", "plan", "accounts", "status"} {
		if err := dashboard(ctx, name); err != nil {
			return fmt.Errorf("dashboard %s: %w", name, err)
		}
	}
	return nil
}

// overview takes the picture of the first screens of the demo's page.
func overview(ctx context.Context) error {
	demo, stop := context.WithCancel(ctx)
	ended := make(chan int)
	go func() {
		ended <- exporter.Main(demo, exporter.Environment{
			Args:      []string{"--demo", "--log.level=error", "--web.listen-address=" + address},
			LookupEnv: func(string) (string, bool) { return "", false },
			Stdout:    os.Stdout, Stderr: os.Stderr,
		})
	}()
	defer func() { stop(); <-ended }()
	if err := ready(ctx); err != nil {
		return err
	}
	return take(ctx, "overview", chromium.Screen(1280, 1500, "light"), chromedp.Navigate("http://"+address))
}

// ready waits until the demo has fetched everything.
func ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/-/ready", http.NoBody)
		if err != nil {
			return err
		}
		if response, err := http.DefaultClient.Do(request); err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// loaded says whether a dashboard's panels are there and none waits for data.
const loaded = `document.querySelector('[data-viz-panel-key], .react-grid-item') &&
	!document.querySelector('[aria-label="Panel loading bar"], [data-testid="Spinner"]')`

// dashboard takes the picture of a week.
func dashboard(ctx context.Context, name string) error {
	url := strings.TrimSuffix(*grafana, "/") + "/d/server-rental-" + name + "?from=now-7d&to=now&kiosk"
	if name == "plan" {
		url += "&var-plan=ryzen-9-9950x"
	}
	return take(ctx, "dashboard-"+name, chromium.Screen(1440, 900, "dark"), chromedp.Navigate(url),
		chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
			_, err := chromedp.Run(ctx, chromedp.Poll[bool](loaded, chromedp.WithPollingTimeout(wait)))
			return err
		}),
		chromedp.Sleep(3*time.Second)) // panels appear after their data
}

// take writes the picture that the screen of a new browser shows after some steps.
func take(ctx context.Context, name string, steps ...chromedp.Action[chromedp.Void]) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	ctx, stop := chromium.Start(ctx)
	defer stop()
	if err := chromedp.Do(ctx, steps...); err != nil {
		return err
	}
	picture, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(*folder, name+".png"), picture, 0o644) //nolint:gosec // it is published
}
