// Package compose_test checks what can be checked of the demo without running
// it: that everything which one file says of another is so.
package compose_test

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"server_rental_exporter/exporter"
	"server_rental_exporter/internal/simulator/simtest"
	"server_rental_exporter/test/internal/repo"
)

// TestMain changes to the directory that paths in the files start from.
func TestMain(m *testing.M) {
	if err := os.Chdir("../../deploy/compose"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

type compose struct {
	Services map[string]service
	Volumes  map[string]any
	Secrets  map[string]struct{ File string }
}

type service struct {
	Image       string
	Build       build
	Command     []string
	Ports       []string
	Volumes     []string
	Tmpfs       []string
	Secrets     []string
	DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
	Environment map[string]string
	ReadOnly    bool     `yaml:"read_only"`
	CapDrop     []string `yaml:"cap_drop"`
	SecurityOpt []string `yaml:"security_opt"`
}

// build is where an image is built: a directory, or a directory and a file in it.
type build struct{ Context, Dockerfile string }

// file returns the path of the Dockerfile.
func (b build) file() string { return filepath.Join(b.Context, b.Dockerfile) }

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

// each calls f for each file and its services.
func each(t *testing.T, f func(t *testing.T, c compose)) {
	t.Helper()
	for _, file := range []string{demo, production} {
		t.Run(file, func(t *testing.T) { f(t, load(t, file)) })
	}
}

func load(t *testing.T, file string) compose {
	t.Helper()
	var c compose
	repo.ReadYAML(t, file, &c)
	want := []string{"alertmanager", "exporter", "grafana", "prometheus"}
	if file == demo {
		want = slices.Insert(want, 3, "history", "notifications")
	}
	simtest.AssertEqual(t, file+": services", slices.Sorted(maps.Keys(c.Services)), want)
	return c
}

func TestServices(t *testing.T) {
	each(t, func(t *testing.T, c compose) {
		pinned := regexp.MustCompile(`^docker\.io/[a-z]+/[a-z]+:v?\d+\.\d+\.\d+$`)
		for name, s := range c.Services {
			switch {
			case s.Build.Context != "":
				if _, err := os.Stat(s.Build.file()); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			case !pinned.MatchString(s.Image):
				t.Errorf("%s: got image %q, want one of a full version", name, s.Image)
			}
			for _, port := range s.Ports {
				if !strings.HasPrefix(port, "127.0.0.1:") {
					t.Errorf("%s: port %s is open to other machines", name, port)
				}
			}
			for _, v := range s.Volumes {
				from, rest, _ := strings.Cut(v, ":")
				if _, named := c.Volumes[from]; named {
					continue
				}
				if _, err := os.Stat(from); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if !strings.HasSuffix(rest, ":ro") {
					t.Errorf("%s: may write to %s", name, from)
				}
			}
			for other := range s.DependsOn {
				if _, there := c.Services[other]; !there {
					t.Errorf("%s: depends on %s, which is not there", name, other)
				}
			}
			for _, secret := range s.Secrets {
				if _, there := c.Secrets[secret]; !there {
					t.Errorf("%s: the secret %s is not there", name, secret)
				}
			}
		}
	})
}

// TestSameImages asserts that both files run the same versions, and that the real variant
// names the image that this version is released as.
func TestSameImages(t *testing.T) {
	demo, production := load(t, demo).Services, load(t, production).Services
	for name, s := range production {
		want := demo[name]
		if name == "exporter" {
			want.Image = "ghcr.io/server-rental-exporter/server_rental_exporter:v" + strings.TrimSpace(repo.Read(t, "VERSION"))
		}
		if s.Image != want.Image || s.Build != want.Build {
			t.Errorf("%s: got %q, want %q, or another build", name, s.Image, want.Image)
		}
	}
	if from := "\nFROM " + demo["prometheus"].Image + "\n"; !strings.Contains(repo.Read(t, demo["history"].Build.Dockerfile), from) {
		t.Errorf("the history is not loaded by %s", demo["prometheus"].Image)
	}
}

// address asks that a service is there and that the port is the one it is shown under.
func address(t *testing.T, all map[string]service, target string) {
	t.Helper()
	host, port, _ := strings.Cut(target, ":")
	s, there := all[host]
	if !there || !slices.ContainsFunc(s.Ports, func(p string) bool { return strings.HasSuffix(p, ":"+port) }) {
		t.Errorf("nothing listens at %s", target)
	}
}

// scrapeConfigs are the jobs of Prometheus' configuration, or its Alertmanagers.
type scrapeConfigs []struct {
	Job           string                       `yaml:"job_name"`
	StaticConfigs []struct{ Targets []string } `yaml:"static_configs"`
}

// prometheusConfig is the configuration of Prometheus in both files.
type prometheusConfig struct {
	RuleFiles []string `yaml:"rule_files"`
	Alerting  struct{ Alertmanagers scrapeConfigs }
	Scrape    scrapeConfigs `yaml:"scrape_configs"`
	Global    struct {
		Interval string `yaml:"scrape_interval"`
	}
}

func TestPrometheus(t *testing.T) {
	var c prometheusConfig
	repo.ReadYAML(t, "prometheus.yml", &c)
	var targets []string
	for _, group := range append(c.Scrape, c.Alerting.Alertmanagers...) {
		for _, s := range group.StaticConfigs {
			targets = append(targets, s.Targets...)
		}
	}
	simtest.AssertEqual(t, "targets", targets, []string{"exporter:10170", "alertmanager:9093"})
	simtest.AssertEqual(t, "job, which is also that of the history", c.Scrape[0].Job, "server_rental")
	each(t, func(t *testing.T, services compose) {
		for _, target := range targets {
			address(t, services.Services, target)
		}
		prometheus := services.Services["prometheus"]
		simtest.AssertEqual(t, "configuration", prometheus.local("/etc/prometheus/prometheus.yml"), "prometheus.yml")
		simtest.AssertEqual(t, "rules", prometheus.local(strings.Join(c.RuleFiles, " ")), "../../alerts/*.rules.yml")
	})
}

func TestGrafana(t *testing.T) {
	var prometheus prometheusConfig
	repo.ReadYAML(t, "prometheus.yml", &prometheus)
	each(t, func(t *testing.T, services compose) {
		grafana := services.Services["grafana"]
		var sources struct {
			Datasources []struct {
				Type, URL, UID string
				JSONData       struct {
					Interval string `yaml:"timeInterval"`
				} `yaml:"jsonData"`
			}
		}
		repo.ReadYAML(t, grafana.local("/etc/grafana/provisioning/datasources/prometheus.yml"), &sources)
		for _, s := range sources.Datasources {
			address(t, services.Services, strings.TrimPrefix(s.URL, "http://"))
			simtest.AssertEqual(t, s.URL+": uid, which the dashboards do not need", s.UID, "")
		}
		simtest.AssertEqual(t, "interval of the first data source", sources.Datasources[0].JSONData.Interval, prometheus.Global.Interval)

		var providers struct {
			Providers []struct{ Options struct{ Path string } }
		}
		repo.ReadYAML(t, grafana.local("/etc/grafana/provisioning/dashboards/server-rental.yml"), &providers)
		if len(providers.Providers) != 1 {
			t.Fatalf("got %d providers of dashboards, want 1", len(providers.Providers))
		}
		for _, file := range repo.Glob(t, "dashboards/*.json") {
			name := filepath.Base(file)
			simtest.AssertEqual(t, name, grafana.local(path.Join(providers.Providers[0].Options.Path, name)), "../../dashboards/"+name)
		}
		if home := grafana.Environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]; grafana.local(home) == "" {
			t.Errorf("the home dashboard %s is not there", home)
		}
	})
}

// TestProduction asserts that the real variant is closed, has a login, and can take the
// receivers of the example, which need the templates.
func TestProduction(t *testing.T) {
	c := load(t, production)
	var example struct{ Templates []string }
	repo.ReadYAML(t, "../../alerts/alertmanager.example.yml", &example)
	templates := c.Services["alertmanager"].local("/etc/alertmanager/" + strings.Join(example.Templates, " "))
	simtest.AssertEqual(t, "templates", templates, "../../alerts/templates/*.tmpl")
	for name, s := range c.Services {
		if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Equal(s.SecurityOpt, []string{"no-new-privileges:true"}) {
			t.Errorf("%s: is not restricted", name)
		}
	}
	for name := range c.Services["grafana"].Environment {
		if strings.HasPrefix(name, "GF_AUTH_ANONYMOUS") {
			t.Errorf("Grafana needs no login: %s", name)
		}
	}
	ignored := repo.Read(t, "deploy/compose/.gitignore")
	for name, secret := range c.Secrets {
		if line := "/" + filepath.Base(secret.File) + "\n"; !strings.Contains(ignored, line) {
			t.Errorf("git does not ignore the secret %s, %s", name, secret.File)
		}
	}
}

// TestProductionExporter checks the configuration of the real variant with the command
// and the environment of its exporter, as delivered and with all examples in its comments.
func TestProductionExporter(t *testing.T) {
	s := load(t, production).Services["exporter"]
	text := repo.Read(t, filepath.Join("deploy/compose", s.local(s.Environment["SERVER_RENTAL_CONFIG_FILE"])))
	example := regexp.MustCompile(`(?m)^# (watches:|  )`)
	for name, c := range map[string]struct {
		config  string
		secrets []string
		want    []string
	}{
		"delivered": {text, s.Secrets, []string{"account main: "}},
		"examples": {
			example.ReplaceAllString(text, "$1"), append([]string{"rental-token-lab"}, s.Secrets...),
			[]string{"account main: ", "account lab: ", "cheap-in-europe: "},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := simtest.WriteFile(t, filepath.Join(dir, "config.yml"), strings.ReplaceAll(c.config, "/run/secrets", dir))
			for _, secret := range c.secrets {
				simtest.WriteFile(t, filepath.Join(dir, secret), "token-of-"+secret)
			}
			for name, value := range s.Environment {
				t.Setenv(name, value)
			}
			t.Setenv("SERVER_RENTAL_CONFIG_FILE", file)
			var out, log bytes.Buffer
			code := exporter.Run(context.Background(), exporter.Environment{
				Args: append(s.Command, "--config.check"), LookupEnv: os.LookupEnv, Stdout: &out, Stderr: &log,
			})
			for _, want := range c.want {
				if code != 0 || !strings.Contains(out.String(), want) {
					t.Errorf("got status %d, %s%s, want %q", code, &out, &log, want)
				}
			}
		})
	}
}

// TestHistory asserts that the history is loaded, with all rules, into the data that
// Prometheus starts with, and that the demo continues it.
func TestHistory(t *testing.T) {
	services := load(t, demo).Services
	s := services["history"]
	prometheus := services["prometheus"]
	if storage := "--storage.tsdb.path=" + s.Command[0]; !slices.Contains(prometheus.Command, storage) {
		t.Errorf("Prometheus has no %s", storage)
	}
	if volume := "prometheus:" + s.Command[0]; !slices.Contains(s.Volumes, volume) || !slices.Contains(prometheus.Volumes, volume) {
		t.Errorf("got volumes %v and %v, want %s in both", s.Volumes, prometheus.Volumes, volume)
	}
	var rules []string
	for _, file := range s.Command[1:] {
		rules = append(rules, s.local(file))
	}
	if want, _ := filepath.Glob("../../alerts/*.rules.yml"); len(want) == 0 || !slices.Equal(rules, want) {
		t.Errorf("got rules %v, want %v", rules, want)
	}
	for _, name := range []string{"exporter", "prometheus"} {
		if got := services[name].DependsOn["history"].Condition; got != "service_completed_successfully" {
			t.Errorf("%s waits for the history until %q", name, got)
		}
	}
}
