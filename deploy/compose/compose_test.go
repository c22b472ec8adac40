// Package compose_test checks what can be checked of the demo without running
// it: that everything which one file says of another is so.
package compose_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

type compose struct {
	Services map[string]service
	Volumes  map[string]any
}

type service struct {
	Image       string
	Build       string
	Command     []string
	Ports       []string
	Volumes     []string
	DependsOn   []string `yaml:"depends_on"`
	Environment map[string]string
}

// mounts returns what of this machine a service sees where.
func (s service) mounts() map[string]string {
	all := map[string]string{}
	for _, v := range s.Volumes {
		if parts := strings.Split(v, ":"); strings.HasPrefix(parts[0], ".") {
			all[parts[1]] = parts[0]
		}
	}
	return all
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	d := yaml.NewDecoder(strings.NewReader(string(text)))
	if err := d.Decode(into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

func services(t *testing.T) map[string]service {
	t.Helper()
	var c compose
	read(t, "compose.yaml", &c)
	if len(c.Services) != 4 {
		t.Fatalf("got %d services, want 4", len(c.Services))
	}
	return c.Services
}

func TestServices(t *testing.T) {
	var c compose
	read(t, "compose.yaml", &c)
	pinned := regexp.MustCompile(`^docker\.io/[a-z]+/[a-z]+:v?\d+\.\d+\.\d+$`)
	for name, s := range c.Services {
		switch {
		case s.Build != "":
			if _, err := os.Stat(filepath.Join(s.Build, "Dockerfile")); err != nil {
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
		for _, other := range s.DependsOn {
			if _, there := c.Services[other]; !there {
				t.Errorf("%s: depends on %s, which is not there", name, other)
			}
		}
	}
}

// address asks that a service is there and that the port is the one it is shown under.
func address(t *testing.T, all map[string]service, target string) {
	t.Helper()
	host, port, _ := strings.Cut(target, ":")
	s, there := all[host]
	if !there || !slices.ContainsFunc(s.Ports, func(p string) bool { return strings.HasSuffix(p, ":"+port) }) {
		t.Errorf("nothing answers at %s", target)
	}
}

func TestPrometheus(t *testing.T) {
	type static []struct {
		StaticConfigs []struct{ Targets []string } `yaml:"static_configs"`
	}
	var c struct {
		RuleFiles []string `yaml:"rule_files"`
		Alerting  struct{ Alertmanagers static }
		Scrape    static `yaml:"scrape_configs"`
		Global    struct {
			Interval string `yaml:"scrape_interval"`
		}
	}
	all := services(t)
	read(t, "prometheus.yml", &c)
	targets := 0
	for _, group := range append(c.Scrape, c.Alerting.Alertmanagers...) {
		for _, s := range group.StaticConfigs {
			for _, target := range s.Targets {
				targets++
				address(t, all, target)
			}
		}
	}
	if targets != 2 {
		t.Errorf("got %d targets, want the exporter and Alertmanager", targets)
	}
	mounts := all["prometheus"].mounts()
	if config := mounts["/etc/prometheus/prometheus.yml"]; config != "./prometheus.yml" {
		t.Errorf("the configuration is %q, want ./prometheus.yml", config)
	}
	var rules []string
	for _, pattern := range c.RuleFiles {
		found, err := filepath.Glob(filepath.Join(mounts[filepath.Dir(pattern)], filepath.Base(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, found...)
	}
	if want, _ := filepath.Glob("../../alerts/*.rules.yml"); len(want) == 0 || !slices.Equal(rules, want) {
		t.Errorf("got rules %v, want %v", rules, want)
	}
}

func TestGrafana(t *testing.T) {
	all := services(t)
	grafana := all["grafana"]
	mounts := grafana.mounts()

	var sources struct {
		Datasources []struct {
			Type, URL, UID string
			JSONData       struct {
				Interval string `yaml:"timeInterval"`
			} `yaml:"jsonData"`
		}
	}
	read(t, filepath.Join(mounts["/etc/grafana/provisioning/datasources"], "prometheus.yml"), &sources)
	for _, s := range sources.Datasources {
		u, err := url.Parse(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		address(t, all, u.Host)
		if s.UID != "" {
			t.Errorf("the data source has the fixed uid %s, which the dashboards do not need", s.UID)
		}
	}
	var prometheus struct{ Global map[string]string }
	read(t, "prometheus.yml", &prometheus)
	if got, want := sources.Datasources[0].JSONData.Interval, prometheus.Global["scrape_interval"]; got != want {
		t.Errorf("the data source's interval is %s, Prometheus scrapes every %s", got, want)
	}

	var providers struct {
		Providers []struct {
			Type    string
			Options struct{ Path string }
		}
	}
	read(t, filepath.Join(mounts["/etc/grafana/provisioning/dashboards"], "server-rental.yml"), &providers)
	if len(providers.Providers) != 1 {
		t.Fatalf("got %d providers of dashboards, want 1", len(providers.Providers))
	}
	dir := providers.Providers[0].Options.Path
	dashboards, err := filepath.Glob("../../dashboards/*.json")
	if err != nil || len(dashboards) == 0 {
		t.Fatalf("no dashboards: %v", err)
	}
	for _, file := range dashboards {
		if at := fmt.Sprintf("%s/%s", dir, filepath.Base(file)); mounts[at] != file {
			t.Errorf("%s is not at %s", file, at)
		}
	}
	home := grafana.Environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
	if mounts[home] == "" {
		t.Errorf("the home dashboard %s is not there", home)
	}
}

func TestAlertmanager(t *testing.T) {
	var c struct {
		Route     struct{ Receiver string }
		Receivers []struct{ Name string }
	}
	config := services(t)["alertmanager"].mounts()["/etc/alertmanager/alertmanager.yml"]
	read(t, config, &c)
	if len(c.Receivers) != 1 || c.Receivers[0].Name != c.Route.Receiver {
		t.Errorf("got receivers %v, want %q", c.Receivers, c.Route.Receiver)
	}
}
