package helm

import (
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	corev1 "k8s.io/api/core/v1"

	"server_rental_exporter/internal/simulator/simtest"
	"server_rental_exporter/test/internal/repo"
)

// TestVersion checks that the chart deploys the exporter that it belongs to.
func TestVersion(t *testing.T) {
	version := strings.TrimSpace(repo.Read(t, "VERSION"))
	var c map[string]any
	repo.ReadYAML(t, chart+"/Chart.yaml", &c)
	simtest.AssertEqual(t, "versions", []any{c["version"], c["appVersion"]}, []any{version, version})
	// A release pushes the image to the registry and the tags of .goreleaser.yaml.
	const image = "ghcr.io/server-rental-exporter/server_rental_exporter"
	release := repo.Read(t, ".goreleaser.yaml")
	for _, part := range []string{"images: [" + image + "]\n", `tags: ["v{{ .Version }}"`} {
		if !strings.Contains(release, part) {
			t.Errorf(".goreleaser.yaml does not contain %s", part)
		}
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

// TestRefused checks that wrong values are refused with an error that names them. TestSchema
// finds objects that accept unknown keys.
func TestRefused(t *testing.T) {
	minimal := valueFiles(t)["minimal"]
	for _, c := range []struct{ set, want string }{
		{"image.name=x", "/image"},
		{"config.api.base_url=rental.example", "/config/api/base_url"},
		{"config.api.rate_limit.public=60", "/config/api/rate_limit/public"},
		{"config.api.http.basic_auth.username=x", "basic_auth"},
		{"config.collectors.plans.interval=60", "/config/collectors/plans/interval"},
		{"accounts[0].name=main,accounts[0].secret.name=x", "key"},
		{"accounts[0].name=main,accounts[0].secret=x", "/accounts/0/secret"},
		{"accounts[0].name=main", `accounts: "main" needs one of secret, tokenFile and token`},
		{"accounts[0].name=main,accounts[0].token=x,accounts[0].tokenFile=/y", `accounts: "main" needs one of secret, tokenFile and token`},
		{"accounts[0].name=main,accounts[0].token=x,accounts[1].name=main,accounts[1].token=y", `there are two accounts "main"`},
		{"accounts[0].name=a,accounts[0].token=x,accounts[1].name=b,accounts[1].secret.name=y,accounts[1].secret.key=z", "no Secret beside an existing one"},
		{"accounts[0].name=a,accounts[0].secret.name=y,accounts[0].secret.key=z,accounts[1].name=b,accounts[1].secret.name=y,accounts[1].secret.key=z", `key "z" of Secret "y" is used twice`},
		{"demo=true", "config.api.base_url: must be empty with demo"},
		{"demo=true,accounts[0].name=main,accounts[0].token=x", "must be empty with demo"},
		{"config.api.base_url=", "config.api.base_url: is required"},
		{"replicaCount=2,shards=2", "replicaCount: must be 1 with shards"},
		{"shards=0", "/shards"},
		{"shards=2 --kube-version=1.27.9", "shards: need Kubernetes 1.28 or later"},
		{"web.tls=true", "web.configSecret.name: is required"},
		{"service.nodePort=30000", "service.nodePort: needs service.type NodePort or LoadBalancer"},
		{"service.type=NodePort,service.loadBalancerIP=192.0.2.1", "service.loadBalancerIP: needs service.type LoadBalancer"},
		{"service.loadBalancerSourceRanges={192.0.2.0/24}", "service.loadBalancerSourceRanges: needs service.type LoadBalancer"},
		{"service.loadBalancerSourceRanges={192.0.2.1}", "/service/loadBalancerSourceRanges/0"},
		{"serviceMonitor.interval=15", "/serviceMonitor/interval"},
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

// schema is the part of a JSON schema that TestSchema reads.
type schema struct {
	Ref                  string `json:"$ref"`
	Type                 any
	Properties           map[string]schema
	Items                *schema
	AdditionalProperties any
	Definitions          map[string]schema
}

// TestSchema checks that the schema refuses unknown keys everywhere except in types of
// Kubernetes, and that values.yaml documents what it accepts.
func TestSchema(t *testing.T) {
	var root schema
	if err := json.Unmarshal([]byte(repo.Read(t, "deploy/helm/server-rental-exporter/values.schema.json")), &root); err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	repo.ReadYAML(t, chart+"/values.yaml", &values)
	open := []string{
		"/global", "/definitions/kubernetes", // checked by others
		"/config/api/http/proxy_connect_header", "/config/api/http/http_headers", // names of headers
	}
	undocumented := []string{"/global", "/resources/claims"}
	var walk func(path string, s schema, v any)
	walk = func(path string, s schema, v any) {
		if s.Type == "object" && (s.AdditionalProperties == nil || s.AdditionalProperties == true) && !slices.Contains(open, path) {
			t.Errorf("%s accepts unknown keys", path)
		}
		// The settings of empty objects are documented elsewhere.
		object, _ := v.(map[string]any)
		if len(object) > 0 && s.Properties != nil && path != "/config/api" {
			keys := slices.DeleteFunc(slices.Sorted(maps.Keys(s.Properties)), func(k string) bool { return slices.Contains(undocumented, path+"/"+k) })
			simtest.AssertEqual(t, "values.yaml: "+path, slices.Sorted(maps.Keys(object)), keys)
		}
		for key, child := range s.Properties {
			walk(path+"/"+key, child, object[key])
		}
		for key, child := range s.Definitions {
			walk(path+"/definitions/"+key, child, nil)
		}
		if s.Items != nil {
			walk(path+"/0", *s.Items, nil)
		}
	}
	walk("", root, values)
}

// TestNotes checks the notes that Helm prints after an installation.
func TestNotes(t *testing.T) {
	for name, want := range map[string][]string{
		"minimal":    {"port-forward service/rental-server-rental-exporter 10170:10170", "http://localhost:10170/", "No account"},
		"token":      {"trials"},
		"many":       {"Secret rental-tokens exists"},
		"pair":       {"rental-tokens", "guest-token", "main, lab"},
		"everything": {"3 shards", "https://localhost", "port-forward pod/rental-exporter-0 10170\n"},
	} {
		out := mustHelm(t, "install", "rental", chart, "--namespace", namespace, "--dry-run=client", "--output=json", "--values", valueFiles(t)[name])
		var release struct{ Info struct{ Notes string } }
		if err := json.Unmarshal([]byte(out), &release); err != nil {
			t.Fatal(err)
		}
		for _, part := range want {
			if !strings.Contains(release.Info.Notes, part) {
				t.Errorf("%s: not found: %s\n%s", name, part, release.Info.Notes)
			}
		}
		if strings.Contains(release.Info.Notes, "token-of-") {
			t.Errorf("%s: the notes contain a token", name)
		}
	}
}

// TestEveryValue checks that each value of the case everything reaches the manifests: its
// texts and numbers are unlike the defaults. Other cases show what switches do.
func TestEveryValue(t *testing.T) {
	file := valueFiles(t)["everything"]
	var values map[string]any
	repo.ReadYAML(t, file, &values)
	manifests := template(t, "--values", file)
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, child := range v {
				walk(path+"."+key, child)
			}
		case []any:
			for i, child := range v {
				walk(fmt.Sprintf("%s[%d]", path, i), child)
			}
		case string, int, float64:
			text := fmt.Sprint(v)
			unused := path == ".image.tag" || path == ".nameOverride" // others take precedence
			if unused == strings.Contains(manifests, text) && !strings.Contains(text, "{{") && !strings.Contains(path, "disabledAlerts") && path != ".nameOverride" {
				t.Errorf("%s: got no %s", path, text)
			}
		}
	}
	walk("", values)
}

// TestAccountsSecret checks where the tokens of a Secret with many keys are.
func TestAccountsSecret(t *testing.T) {
	all := render(t, "--values", valueFiles(t)["many"])
	template, container := pod(t, all)
	simtest.AssertEqual(t, "Secret", volume(t, template, "accounts").Secret.SecretName, "rental-tokens")
	var config struct {
		AccountFiles []string `yaml:"account_files"`
	}
	text := one[*corev1.ConfigMap](t, all).Data["config.yml"]
	if err := yaml.Unmarshal([]byte(text), &config); err != nil {
		t.Fatal(err)
	}
	simtest.AssertEqual(t, "account_files", config.AccountFiles, []string{container.VolumeMounts[1].MountPath + "/*"})
}

// TestReadme renders the chart with each example of its README, and runs the commands that
// need no cluster.
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
