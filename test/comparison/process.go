package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A subject is an exporter and the API that it needs.
type subject struct {
	api             string // empty: the simulator of this repository
	seriesPerItem   int
	background      bool // fetches between scrapes
	arguments       func(listen, config string) []string
	environment     func(api, ca string) []string
	config          func() string
	requestsCounter string // of the exporter, where the API does not count
}

var subjects = map[string]subject{
	"rental": {
		seriesPerItem: 5, background: true, requestsCounter: "server_rental_exporter_api_requests_total",
		arguments: func(listen, _ string) []string {
			return []string{"--web.listen-address=" + listen, "--log.level=error"}
		},
		environment: func(api, _ string) []string {
			return []string{"SERVER_RENTAL_API_BASE_URL=http://" + api + "/api/v1", "SERVER_RENTAL_API_TOKEN=token-0"}
		},
	},
	"hcloud": {
		api: "hetzner", seriesPerItem: 13,
		arguments: func(listen, _ string) []string { return []string{"--web.address=" + listen, "--hcloud.token=unused"} },
		environment: func(api, ca string) []string {
			return append(behindProxy(api, ca), ifTimeout("HCLOUD_EXPORTER_REQUEST_TIMEOUT="+timeout.String(), "HCLOUD_EXPORTER_WEB_TIMEOUT="+timeout.String())...)
		},
	},
	"digitalocean": {
		api: "digitalocean", seriesPerItem: 6,
		arguments: func(listen, _ string) []string { return []string{"--webaddr=" + listen} },
		environment: func(api, ca string) []string {
			return append(behindProxy(api, ca), append(ifTimeout("HTTP_TIMEOUT="+strconv.FormatInt(timeout.Milliseconds(), 10)), "DIGITALOCEAN_TOKEN=unused")...)
		},
	},
	"yace": {
		api: "cloudwatch", seriesPerItem: len(cloudwatchMetrics), background: true, config: yaceConfig,
		arguments: func(listen, config string) []string {
			return []string{"--listen-address=" + listen, "--config.file=" + config, "--scraping-interval=" + strconv.Itoa(int(refresh.Seconds()))}
		},
		environment: func(api, _ string) []string {
			return []string{"AWS_ENDPOINT_URL=http://" + api, "AWS_ACCESS_KEY_ID=unused", "AWS_SECRET_ACCESS_KEY=unused", "AWS_REGION=eu-central-1"}
		},
	},
}

// behindProxy makes a Go program with a fixed base URL send its requests to the
// simulated API, which is an HTTPS proxy with a certificate for every host.
func behindProxy(api, ca string) []string {
	return []string{"HTTPS_PROXY=http://" + api, "SSL_CERT_FILE=" + ca}
}

// ifTimeout returns settings that are needed if the flag timeout is set.
func ifTimeout(settings ...string) []string {
	if *timeout == 0 {
		return nil
	}
	return settings
}

// A test is an exporter and its API, each in a process of its own.
type test struct {
	subject       subject
	api, exporter *process
	apiAddress    string
	url           string
	directory     string
}

func start(ctx context.Context, subject subject) (*test, error) {
	directory, err := os.MkdirTemp("", "comparison")
	if err != nil {
		return nil, err
	}
	t := &test{subject: subject, directory: directory, apiAddress: freeAddress(ctx)}
	if t.api, err = t.startAPI(ctx); err != nil {
		return nil, err
	}
	listen := freeAddress(ctx)
	t.url = "http://" + listen + "/metrics"
	config := filepath.Join(directory, "config.yml")
	if subject.config != nil {
		if err := os.WriteFile(config, []byte(subject.config()), 0o600); err != nil {
			return nil, err
		}
	}
	environment := append(subject.environment(t.apiAddress, t.ca()), "GOMAXPROCS=1")
	t.exporter, err = startProcess(ctx, environment, flag.Arg(1), subject.arguments(listen, config)...)
	if err != nil {
		t.api.kill()
	}
	return t, err
}

func (t *test) startAPI(ctx context.Context) (*process, error) {
	items := strconv.Itoa(max(1, *series/t.subject.seriesPerItem))
	if t.subject.api == "" {
		p, err := startProcess(ctx, nil, flag.Arg(2), "--listen-address="+t.apiAddress, "--accounts=1", "--servers="+items)
		return p, errors.Join(err, waitFor(ctx, t.apiAddress))
	}
	own, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p, err := startProcess(ctx, nil, own, "-api="+t.subject.api, "-series="+items, t.apiAddress, t.ca())
	return p, errors.Join(err, waitFor(ctx, t.apiAddress))
}

func (t *test) ca() string { return filepath.Join(t.directory, "ca.pem") }

func (t *test) stop() {
	t.exporter.kill()
	t.api.kill()
	_ = os.RemoveAll(t.directory)
}

// warmUp waits until the exporter exports all series, and scrapes three times more.
func (t *test) warmUp(ctx context.Context) error {
	var last sample
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(time.Second) {
		if last = scrape(ctx, t.url); last.err == nil && last.series >= *series {
			for range 3 {
				scrape(ctx, t.url)
			}
			return nil
		}
	}
	return fmt.Errorf("not ready: %s", last)
}

// requests returns how many requests the API answered.
func (t *test) requests(ctx context.Context) float64 {
	if t.subject.requestsCounter != "" {
		return scrape(ctx, t.url).sum(t.subject.requestsCounter)
	}
	return scrape(ctx, "http://"+t.apiAddress+requestsPath).sum(requestsMetric)
}

type process struct{ cmd *exec.Cmd }

func startProcess(ctx context.Context, environment []string, name string, arguments ...string) (*process, error) {
	cmd := exec.CommandContext(ctx, name, arguments...) //nolint:gosec // the programs that the user named
	cmd.Env = append(os.Environ(), environment...)
	return &process{cmd}, cmd.Start()
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// pause stops the process. Its connections stay open, and the kernel accepts new ones.
func (p *process) pause() { _ = p.cmd.Process.Signal(syscall.SIGSTOP) }

// cpu returns the processor time of the process, user and system, with the resolution of
// the scheduler. The clock's number is what clock_getcpuclockid(3) computes.
func (p *process) cpu() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^p.cmd.Process.Pid)<<3|2, &t); err != nil { //nolint:gosec // Linux has fewer processes
		panic(err)
	}
	return time.Duration(t.Nano())
}

// memory returns the resident memory in KiB.
func (p *process) memory() int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		panic(err)
	}
	_, after, _ := strings.Cut(string(status), "VmRSS:")
	kib, err := strconv.Atoi(strings.Fields(after)[0])
	if err != nil {
		panic(err)
	}
	return kib
}

func freeAddress(ctx context.Context) string {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func waitFor(ctx context.Context, address string) error {
	for range 600 {
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err == nil {
			return connection.Close()
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("%s: no API", address)
}

var client = &http.Client{
	Timeout:   time.Minute,
	Transport: &http.Transport{DisableCompression: true},
}
