//go:build unix

package chaos_test

import (
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

func TestMain(m *testing.M) { simtest.Main(m) }

// TestLoad runs many scrapers without pause, beside a scraper that reads nothing and many
// idle connections: no error, and no request to the API. The exporter has one processor.
func TestLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	api := simtest.Start(t, simulator.Options{})
	cmd := exec.Command(simtest.Binary(t), "--web.listen-address=127.0.0.1:0", "--config.file="+api.ConfigFile(t.TempDir(), simtest.Tokens(), ""))
	cmd.Env = []string{"GOMAXPROCS=1"}
	p := simtest.StartCommand(t, cmd)
	p.WaitServing()
	p.WaitReady()
	p.Eventually("a response to every request", api.Idle)
	requests := len(api.Requests())
	for range 100 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(p.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "GET /metrics HTTP/1.0\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 20, DisableCompression: true}}
	defer client.CloseIdleConnections()
	end := time.Now().Add(time.Second)
	var scrapers sync.WaitGroup
	for range 20 {
		scrapers.Go(func() {
			for time.Now().Before(end) {
				r, err := simtest.Do(client, http.MethodGet, p.URL+"/metrics", "Accept-Encoding", "gzip")
				if err != nil || r.Status != http.StatusOK || len(r.Body) < 1000 {
					t.Errorf("scrape: status %d, %d bytes, error %v", r.Status, len(r.Body), err)
					return
				}
			}
		})
	}
	scrapers.Wait()
	simtest.AssertEqual(t, "requests by path", api.CountByPath(requests), map[string]int{})
}

// TestWritesNothing: the exporter works where it can write no file, which a limit of 0 bytes
// stands for, and where nobody reads its log any more.
func TestWritesNothing(t *testing.T) {
	t.Parallel()
	prlimit, err := exec.LookPath("prlimit")
	if err != nil {
		t.Skip("no prlimit")
	}
	address := simtest.FreeAddress(t)
	p := simtest.StartCommand(t, exec.Command("bash", "-c", `exec "$@" 2> >(true)`, "bash", prlimit, "--fsize=0",
		simtest.Binary(t), "--demo", "--log.level=debug", "--web.listen-address="+address))
	p.Eventually("ready", func() bool {
		r, err := simtest.Do(http.DefaultClient, http.MethodGet, "http://"+address+"/-/ready")
		return err == nil && r.Status == http.StatusOK
	})
	p.Signal(syscall.SIGTERM)
	simtest.AssertEqual(t, "exit status", p.Wait(), 0)
}
