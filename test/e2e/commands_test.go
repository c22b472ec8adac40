//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/repo"
)

// rental is the configuration that the documents' commands use.
const rental = `api:
  base_url: https://rental.example/api/v1
accounts:
  - name: main
    token_file: token
watches:
  - name: cheap-in-europe
    regions: [Europe]
    min_memory_gib: 64
    max_usd_per_month: 100
`

// serves matches commands that run until they are stopped.
var serves = regexp.MustCompile(`^(go run \. |(\./)?server_rental_exporter )`)

// ends matches those of them that do not.
var ends = regexp.MustCompile(`--(once|config\.check|version|help)\b`)

// TestDocumentedCommands runs the blocks of shell commands whose comment names it, in a
// copy of the repository, with a simulated provider in place of the documents' example.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	api, tokens := startAPI(t, "main")
	ran := 0
	for path, doc := range repo.Documents(t) {
		var d documented
		for _, block := range doc.Blocks {
			if !strings.Contains(block.Comment, t.Name()) {
				continue
			}
			if d.dir == "" {
				d = newDocumented(t, api.URL.String(), tokens["main"])
			}
			ran++
			t.Run(path, func(t *testing.T) {
				d.t = t
				d.run(block)
			})
		}
	}
	if ran == 0 {
		t.Fatal("no document names this test")
	}
}

// documented runs the commands of one document.
type documented struct {
	t       *testing.T
	dir     string
	token   string
	env     []string // variables, beside those of the test
	replace *strings.Replacer
}

// newDocumented copies the repository. In commands, a provider takes
// the place of the documents' example, and other paths and addresses as given.
func newDocumented(t *testing.T, baseURL, token string, replacements ...string) documented {
	t.Helper()
	dir := repo.Copy(t)
	return documented{t: t, dir: dir, token: token, replace: strings.NewReplacer(append(replacements,
		"https://rental.example/api/v1", baseURL,
		"/var/lib/node_exporter/textfile", dir,
		"/etc/rental.yml", filepath.Join(dir, "rental.yml"),
		"/usr/bin/server_rental_exporter", simtest.Binary(t),
		"~/", dir+"/", "$HOME", dir,
	)...)}
}

// writeFiles writes the files that the commands need.
func (d documented) writeFiles() {
	d.t.Helper()
	withoutWatches, _, _ := strings.Cut(rental, "watches:")
	for name, text := range map[string]string{"rental.yml": rental, "lab.yml": withoutWatches, "token": d.token} {
		simtest.WriteFile(d.t, filepath.Join(d.dir, name), d.replace.Replace(text))
	}
}

func (d documented) run(block repo.Block) {
	d.t.Helper()
	d.writeFiles()
	var script strings.Builder
	for line := range strings.Lines(block.Text) {
		if serves.MatchString(line) && !ends.MatchString(line) {
			d.execute(script.String())
			script.Reset()
			d.serve(line)
		} else {
			script.WriteString(line)
		}
	}
	d.execute(script.String())
}

// execute runs commands that end, with the token as their input.
func (d documented) execute(script string) {
	d.t.Helper()
	cmd := d.command(script)
	cmd.Stdin = strings.NewReader(d.token)
	if out, err := cmd.CombinedOutput(); err != nil {
		d.t.Errorf("%s\n%v\n%s", script, err, out)
	}
}

// serve runs a command that serves until it is ready, and interrupts it.
func (d documented) serve(line string) {
	d.t.Helper()
	line, _, _ = strings.Cut(strings.TrimSpace(line), " #")
	address := simtest.FreeAddress(d.t)
	line = strings.Replace(line, " --web.listen-address=localhost:10170", "", 1)
	cmd := d.command("exec " + line + " --web.listen-address=" + address)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // go run does not pass signals on
	p := simtest.StartServing(d.t, cmd, address, "/-/ready")
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM); err != nil {
		d.t.Error(err)
	}
	p.Wait() // any status is right: go run returns that of a signal
}

// command returns a shell that runs commands in the copy, with the exporter in its PATH. A
// script runs as cron does it.
func (d documented) command(script string) *exec.Cmd {
	if strings.HasPrefix(script, "#!/bin/sh") {
		cmd := exec.Command("sh", "-c", d.replace.Replace(script))
		cmd.Dir, cmd.Env = "/", []string{"PATH=/usr/bin:/bin"}
		return cmd
	}
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", d.replace.Replace(script))
	cmd.Dir = d.dir
	cmd.Env = append(append(os.Environ(), d.env...), "PATH="+filepath.Dir(simtest.Binary(d.t))+":"+os.Getenv("PATH"))
	return cmd
}
