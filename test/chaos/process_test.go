package chaos_test

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/simulator/simtest"
)

func TestMain(m *testing.M) { simtest.Main(m) }

// skipShort skips a test that takes more than a second.
func skipShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("slow")
	}
}

// hourly is YAML that makes every collector fetch once during a test.
func hourly() string {
	var b strings.Builder
	b.WriteString("collectors:\n")
	for _, r := range collector.Resources() {
		fmt.Fprintf(&b, "  %s: {interval: 1h}\n", r.Name)
	}
	return b.String()
}

// collectorCount returns how many collectors a number of accounts have, the public
// ones included.
func collectorCount(accounts int) int {
	n := 0
	for _, r := range collector.Resources() {
		if r.Account {
			n += accounts
		} else {
			n++
		}
	}
	return n
}

// failing counts the collectors that do not work, including those not tried yet.
func failing(page simtest.Exposition) int {
	n := len(page.WithPrefix("server_rental_exporter_collector_interval_seconds{"))
	for _, success := range page.CollectorSuccess() {
		n -= int(success)
	}
	return n
}

// startReady runs the exporter with environment variables until it has fetched
// everything once.
func startReady(t testing.TB, env []string, args ...string) *simtest.Process {
	t.Helper()
	cmd := exec.Command(simtest.Binary(t), append([]string{"--web.listen-address=127.0.0.1:0"}, args...)...)
	cmd.Env = append([]string{}, env...)
	p := simtest.StartCommand(t, cmd)
	p.WaitServing()
	p.WaitReady()
	return p
}

// memory returns a value of /proc/PID/status in MiB.
func memory(p *simtest.Process, t testing.TB, name string) int {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Cmd.Process.Pid))
	if err != nil {
		t.Skipf("no /proc: %v", err)
	}
	_, after, _ := strings.Cut(string(raw), name+":")
	kib, err := strconv.Atoi(strings.Fields(after)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kib >> 10
}
