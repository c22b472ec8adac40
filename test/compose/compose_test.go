// Package compose_test checks what can be checked of the Compose files without Docker: that
// everything which one file says of another is so.
package compose_test

import (
	"bytes"
	"context"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/server-rental-exporter/server_rental_exporter/exporter"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/repo"
)

type compose struct {
	Services map[string]service
	Volumes  map[string]any
}

type service struct {
	Image       string
	Build       struct{ Context, Dockerfile string }
	Command     []string
	Ports       []string
	Volumes     []string
	Environment map[string]string
	Networks    map[string]struct{ Aliases []string }
	ReadOnly    bool     `yaml:"read_only"`
	CapDrop     []string `yaml:"cap_drop"`
	SecurityOpt []string `yaml:"security_opt"`
}

// local returns the path on this machine of what a service sees at a path; empty if that is not
// mounted.
func (s service) local(inside string) string {
	for _, v := range s.Volumes {
		parts := strings.Split(v, ":")
		if below, found := strings.CutPrefix(inside, parts[1]); found && strings.HasPrefix(parts[0], ".") {
			return filepath.Join(parts[0], below)
		}
	}
	return ""
}

// The files of the demo and of the real variant.
const (
	demo       = "compose.yaml"
	production = "compose.production.yaml"
)

// load follows README.md in a checkout that only its owner can read, reads a file, and changes to its
// directory, because paths in it are relative.
func load(t *testing.T, file string) (c compose) {
	t.Helper()
	dir := t.TempDir()
	repo.Run(t, repo.Path(t, "."), "bash", "-c", `cp -r Dockerfile alerts dashboards deploy "$0" && chmod -R go= "$0"`, dir)
	for _, block := range repo.Documents(t)["deploy/compose/README.md"].Blocks {
		if strings.Contains(block.Text, "\nchmod ") {
			withoutDocker := regexp.MustCompile(`(?m)^docker .*`).ReplaceAllString(block.Text, "")
			repo.Run(t, dir, "bash", "-c", "umask 077; echo a-token | ("+withoutDocker+")")
		}
	}
	t.Chdir(filepath.Join(dir, "deploy/compose"))
	repo.ReadYAML(t, file, &c)
	return c
}

// TestFiles checks services by themselves: that what they name exists, and that others, such as the users
// of the containers, can read what is mounted, but not the secrets.
func TestFiles(t *testing.T) {
	pinned := regexp.MustCompile(`^docker\.io/[a-z]+/[a-z]+:v?\d+\.\d+\.\d+$`)
	for file, secrets := range map[string]string{demo: "", production: "./production/tokens/main"} {
		c, find := load(t, file), []string{"find"}
		for name, s := range c.Services {
			where := file + ": " + name
			if s.Build.Context == "" && !pinned.MatchString(s.Image) {
				t.Errorf("%s: got image %q, want one of a full version", where, s.Image)
			}
			if s.Build.Context != "" {
				repo.Run(t, s.Build.Context, "test", "-f", s.Build.Dockerfile)
			}
			for _, port := range s.Ports {
				if !strings.HasPrefix(port, "127.0.0.1:") {
					t.Errorf("%s: port %s is open to other machines", where, port)
				}
			}
			for _, v := range s.Volumes {
				from, rest, _ := strings.Cut(v, ":")
				if _, named := c.Volumes[from]; named {
					continue
				}
				find = append(find, from)
				if !strings.HasSuffix(rest, ":ro") {
					t.Errorf("%s: may write to %s", where, from)
				}
			}
			if file == production {
				got := []any{s.ReadOnly, s.CapDrop, s.SecurityOpt}
				simtest.AssertEqual(t, where+": restrictions", got, []any{true, []string{"ALL"}, []string{"no-new-privileges:true"}})
			}
		}
		closed := repo.Run(t, ".", append(find, "!", "-perm", "-o=r", "-o", "-type", "d", "!", "-perm", "-o=x")...)
		simtest.AssertEqual(t, file+": files that only the owner can read", closed, secrets)
	}
	if info, err := os.Stat("load-history.sh"); err != nil || info.Mode().Perm() != 0o755 { // the image has its mode
		t.Errorf("load-history.sh: got mode %v, %v", info.Mode(), err)
	}
}

// TestLineEndings checks out the files as Git for Windows does by default: a script whose first line
// ends with a carriage return does not start in a container.
func TestLineEndings(t *testing.T) {
	const checkout = `git -c core.autocrlf=true checkout-index --all --prefix="$0/" && grep --recursive --files-with-matches --binary-files=without-match $'\r' "$0" || true`
	simtest.AssertEqual(t, "files with carriage returns", repo.Run(t, repo.Path(t, "."), "bash", "-c", checkout, t.TempDir()), "")
}

// TestImages checks that both files run the same versions, and that the real variant names the
// image that this version is released as.
func TestImages(t *testing.T) {
	demo, production := load(t, demo).Services, load(t, production).Services
	for name, s := range production {
		want := demo[name]
		if name == "exporter" {
			want.Image = "ghcr.io/server-rental-exporter/server_rental_exporter:v" + strings.TrimSpace(repo.Read(t, "VERSION"))
		}
		simtest.AssertEqual(t, name, []any{s.Image, s.Build}, []any{want.Image, want.Build})
	}
}

// TestHistory checks that the history is loaded by the same Prometheus, with the recording rules.
// TestLoadHistory of e2e loads one.
func TestHistory(t *testing.T) {
	services := load(t, demo).Services
	history := services["history"]
	if from := "\nFROM " + services["prometheus"].Image + "\n"; !strings.Contains(repo.Read(t, history.Build.Dockerfile), from) {
		t.Errorf("the history is not loaded by %s", services["prometheus"].Image)
	}
	simtest.AssertEqual(t, "recording rules", history.local(history.Command[1]), "../../alerts/stock.rules.yml")
}

// assertServed checks that a service is there and that the port is the one it is shown under.
func assertServed(t *testing.T, all map[string]service, target string) {
	t.Helper()
	host, port, _ := strings.Cut(target, ":")
	if s, there := all[host]; !there || !slices.ContainsFunc(s.Ports, func(p string) bool { return strings.HasSuffix(p, ":"+port) }) {
		t.Errorf("nothing listens at %s", target)
	}
}

// TestWiring checks what Prometheus and Grafana read and whom they ask, in both files.
func TestWiring(t *testing.T) {
	type jobs []struct {
		StaticConfigs []struct{ Targets []string } `yaml:"static_configs"`
	}
	var prometheus struct {
		RuleFiles []string `yaml:"rule_files"`
		Alerting  struct{ Alertmanagers jobs }
		Scrape    jobs `yaml:"scrape_configs"`
	}
	repo.ReadYAML(t, repo.Path(t, "deploy/compose/prometheus.yml"), &prometheus)
	for _, file := range []string{demo, production} {
		services := load(t, file).Services
		for _, group := range append(prometheus.Scrape, prometheus.Alerting.Alertmanagers...) {
			assertServed(t, services, group.StaticConfigs[0].Targets[0])
		}
		simtest.AssertEqual(t, "configuration", services["prometheus"].local("/etc/prometheus/prometheus.yml"), "prometheus.yml")
		if file == demo { // its notifications go to the service that has the name of the placeholder
			notifications := services["notifications"]
			simtest.AssertEqual(t, "alertmanager.yml", services["alertmanager"].local("/etc/alertmanager/alertmanager.yml"), "../../alerts/alertmanager.yml")
			placeholder := "http://" + notifications.Networks["default"].Aliases[0] + "/TOPIC"
			if !strings.Contains(repo.Read(t, "alerts/alertmanager.yml"), "url: "+placeholder) {
				t.Errorf("alertmanager.yml does not send to %s", placeholder)
			}
		}
		simtest.AssertEqual(t, "rules", services["prometheus"].local(prometheus.RuleFiles[0]), "../../alerts/*.rules.yml")

		grafana := services["grafana"]
		var sources struct {
			Datasources []struct{ URL string }
		}
		repo.ReadYAML(t, grafana.local("/etc/grafana/provisioning/datasources/prometheus.yml"), &sources)
		for _, s := range sources.Datasources {
			assertServed(t, services, strings.TrimPrefix(s.URL, "http://"))
		}
		var providers struct {
			Providers []struct{ Options struct{ Path string } }
		}
		repo.ReadYAML(t, grafana.local("/etc/grafana/provisioning/dashboards/server-rental.yml"), &providers)
		for _, dashboard := range repo.Glob(t, "dashboards/*.json") {
			name := filepath.Base(dashboard)
			simtest.AssertEqual(t, name, grafana.local(path.Join(providers.Providers[0].Options.Path, name)), "../../dashboards/"+name)
		}
		if _, anonymous := grafana.Environment["GF_AUTH_ANONYMOUS_ENABLED"]; anonymous != (file == demo) {
			t.Errorf("%s: anonymous users: got %t", file, anonymous)
		}
	}
}

// TestProductionExporter checks the configuration of the real variant with the command
// and the environment of its exporter, as delivered and with all examples in its comments.
func TestProductionExporter(t *testing.T) {
	s := load(t, production).Services["exporter"]
	text := repo.Run(t, ".", "cat", s.local(s.Environment["SERVER_RENTAL_CONFIG_FILE"]))
	uncommented := regexp.MustCompile(`(?m)^# (watches:|  )`).ReplaceAllString(text, "$1")
	for config, wants := range map[string][]string{text: {"account: main\n"}, uncommented: {"account: main\n", "account: lab\n"}} {
		dir := t.TempDir()
		for _, name := range []string{"main", "lab"} {
			simtest.WriteFile(t, filepath.Join(dir, name), "token-of-"+name)
		}
		inside := strings.TrimSuffix(strings.Split(s.Volumes[1], ":")[1], "/")
		t.Setenv("SERVER_RENTAL_CONFIG_FILE", simtest.WriteFile(t, filepath.Join(t.TempDir(), "config.yml"), strings.ReplaceAll(config, inside, dir)))
		var out, log bytes.Buffer
		code := exporter.Main(context.Background(), exporter.Environment{
			Args: append(s.Command, "--config.check"), Stdout: &out, Stderr: &log,
		})
		for _, want := range wants {
			if code != 0 || !strings.Contains(out.String(), want) {
				t.Errorf("got status %d, %s%s, want %q", code, &out, &log, want)
			}
		}
	}
}
