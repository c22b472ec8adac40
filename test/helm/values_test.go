package helm

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"server_rental_exporter/internal/simulator/simtest"
	"server_rental_exporter/test/internal/repo"
)

// TestVersion checks that the chart deploys the exporter that it belongs to.
func TestVersion(t *testing.T) {
	version := strings.TrimSpace(repo.Read(t, "VERSION"))
	var c map[string]any
	repo.ReadYAML(t, chart+"/Chart.yaml", &c)
	simtest.AssertEqual(t, "versions", []any{c["version"], c["appVersion"]}, []any{version, version})
	const image = "ghcr.io/server-rental-exporter/server_rental_exporter"
	if !strings.Contains(repo.Read(t, ".goreleaser.yaml"), "images: ["+image+"]\n") {
		t.Errorf(".goreleaser.yaml does not push %s", image)
	}
	_, container := pod(t, render(t, "--values", valueFiles(t)["minimal"]))
	simtest.AssertEqual(t, "image", container.Image, image+":v"+version)
}

// TestPackage checks that a packaged chart renders the same as its directory, and has no
// other files than those.
func TestPackage(t *testing.T) {
	dir := t.TempDir()
	mustHelm(t, "package", chart, "--destination", dir)
	archives, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(archives) != 1 {
		t.Fatalf("got %v, want one archive", archives)
	}
	values := valueFiles(t)["everything"]
	if mustHelm(t, "template", "rental", archives[0], "--namespace", namespace, "--values", values) != template(t, "--values", values) {
		t.Error("the packaged chart renders something else")
	}
	files, err := exec.Command("tar", "-tzf", archives[0]).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"alerts/tests", "alertmanager", "generator", "files/dashboards/README"} {
		if strings.Contains(string(files), name) {
			t.Errorf("the package has %s", name)
		}
	}
}

// TestRefused checks that wrong values are refused with an error that names them: what the
// templates check, and an unknown key.
func TestRefused(t *testing.T) {
	minimal := valueFiles(t)["minimal"]
	for _, c := range []struct{ set, want string }{
		{"image.name=x", "/image"},
		{"config.api.http.basic_auth.username=x", "basic_auth"},
		{"accounts[0].name=main,accounts[0].secret.name=x", "key"},
		{"accounts[0].name=main", `accounts: "main" needs one of secret, tokenFile and token`},
		{"accounts[0].name=main,accounts[0].token=x,accounts[0].tokenFile=/y", `accounts: "main" needs one of secret, tokenFile and token`},
		{"accounts[0].name=main,accounts[0].token=x,accounts[1].name=main,accounts[1].token=y", `there are two accounts "main"`},
		{"accounts[0].name=a,accounts[0].token=x,accounts[1].name=b,accounts[1].secret.name=y,accounts[1].secret.key=z", "no Secret beside an existing one"},
		{"accounts[0].name=a,accounts[0].secret.name=y,accounts[0].secret.key=z,accounts[1].name=b,accounts[1].secret.name=y,accounts[1].secret.key=z", `key "z" of Secret "y" is used twice`},
		{"demo=true", "config.api.base_url: must be empty with demo"},
		{"demo=true,accounts[0].name=main,accounts[0].token=x", "must be empty with demo"},
		{"config.api.base_url=", "config.api.base_url: is required"},
		{"replicaCount=2,shards=2", "replicaCount: must be 1 with shards"},
		{"shards=2 --kube-version=1.27.9", "shards: need Kubernetes 1.28 or later"},
		{"web.tls=true", "web.configSecret.name: is required"},
		{"service.nodePort=30000", "service.nodePort: needs service.type NodePort or LoadBalancer"},
		{"service.type=NodePort,service.loadBalancerIP=192.0.2.1", "service.loadBalancerIP: needs service.type LoadBalancer"},
		{"scrapeConfig.enabled=true", "scrapeConfig.enabled: needs web.serviceDiscovery"},
		{"prometheusRule.disabledAlerts={ServerRentalNothing}", `there is no alert "ServerRentalNothing"`},
		{"networkPolicy.enabled=true,networkPolicy.from=null", "networkPolicy.from: must not be empty"},
		{"livenessProbe.httpGet.path=/", "httpGet"},
		{"extraArgs={--web.listen-address=:80}", "/extraArgs/0"},
	} {
		args := append([]string{"template", "rental", chart, "--values", minimal, "--set"}, strings.Fields(c.set)...)
		if _, err := runHelm(t, args...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got error %v, want %q", c.set, err, c.want)
		}
	}
	// Flags that other values set.
	_, container := pod(t, render(t, "--values", valueFiles(t)["everything"]))
	for _, arg := range append(container.Args, "--demo", "--shard=1") {
		if _, err := runHelm(t, "template", chart, "--values", minimal, "--set-json", `extraArgs=["`+arg+`"]`); err == nil && arg != "--no-collector.ssh_keys" {
			t.Errorf("%s can be given twice", arg)
		}
	}
}

// TestReadme renders the chart with each example of its README, and runs the commands that
// need no cluster, with the notes that Helm then prints.
func TestReadme(t *testing.T) {
	readme := repo.Read(t, "deploy/helm/server-rental-exporter/README.md")
	blocks := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```").FindAllStringSubmatch(readme, -1)
	for _, block := range blocks {
		file := simtest.WriteFile(t, filepath.Join(t.TempDir(), "values.yaml"), block[1])
		t.Log(block[1])
		render(t, "--values", valueFiles(t)["minimal"], "--values", file)
	}
	values := simtest.WriteFile(t, filepath.Join(t.TempDir(), "rental.yaml"), blocks[0][1])
	commands := regexp.MustCompile(`(?m)^helm (.*)`).FindAllStringSubmatch(readme, -1)
	if len(commands) == 0 {
		t.Fatal("no commands")
	}
	for _, c := range commands {
		args := strings.NewReplacer("upgrade --install", "install", "deploy/helm/server-rental-exporter", chart, "rental.yaml", values).Replace(c[1])
		mustHelm(t, append(strings.Fields(args), "--dry-run=client")...)
	}
}
