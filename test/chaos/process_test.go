//go:build unix

package chaos_test

import (
	"os/exec"
	"syscall"
	"testing"

	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

func TestMain(m *testing.M) { simtest.Main(m) }

// TestWritesNothing: the exporter works where it can write no file, which a limit of 0 bytes
// stands for, and where nobody reads its log any more.
func TestWritesNothing(t *testing.T) {
	t.Parallel()
	prlimit, err := exec.LookPath("prlimit")
	if err != nil {
		t.Skip("no prlimit")
	}
	address := simtest.FreeAddress(t)
	p := simtest.StartServing(t, exec.Command("bash", "-c", `exec "$@" 2> >(true)`, "bash", prlimit, "--fsize=0",
		simtest.Binary(t), "--demo", "--log.level=debug", "--web.listen-address="+address), address, "/-/ready")
	simtest.AssertEqual(t, "signal", p.Cmd.Process.Signal(syscall.SIGTERM), nil)
	simtest.AssertEqual(t, "exit status", p.Wait(), 0)
}
