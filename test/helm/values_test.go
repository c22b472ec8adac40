package helm

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
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

// TestPackage checks that a packaged chart renders the same as its directory, and that Helm
// can store its release.
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
	if readme := mustHelm(t, "show", "readme", archives[0]); !strings.Contains(readme, "# Helm chart") {
		t.Errorf("got README %q", readme)
	}
	var compressed bytes.Buffer
	z := gzip.NewWriter(&compressed)
	_, err = z.Write([]byte(mustHelm(t, "install", "rental", archives[0], "--dry-run=client", "--output=json", "--values", values)))
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	const oneMebibyte = 1 << 20 // bytes of a Secret, in which Helm stores a release
	if n := base64.StdEncoding.EncodedLen(compressed.Len()); n > oneMebibyte/2 {
		t.Errorf("the release has %d bytes, too near to the limit of a Secret", n)
	}
}

// TestRefused checks that wrong values are refused with an error that names them. TestSchema
// finds objects that accept unknown keys.
func TestRefused(t *testing.T) {
	minimal := valueFiles(t)["minimal"]
	for _, c := range []struct{ set, want string }{
		{"image.name=x", "/image"},
		{"image.digest=latest", "/image/digest"},
		{"config.api.base_url=rental.example", "/config/api/base_url"},
		{"config.api.rate_limit.public=60", "/config/api/rate_limit/public"},
		{"config.api.http.basic_auth.username=x", "basic_auth"},
		{"config.api.http.tls_config.key=x", "/config/api/http/tls_config"},
		{"config.collectors.plans.interval=60", "/config/collectors/plans/interval"},
		{"config.watches[0].name=x", "/config/watches/0"},
		{"config.accounts[0].name=main", "accounts"},
		{"accounts[0].name=main,accounts[0].secret.name=x", "key"},
		{"accounts[0].name=main,accounts[0].secret=x", "/accounts/0/secret"},
		{"accounts[0].name=main", `accounts: "main" needs one of secret, tokenFile and token`},
		{"accounts[0].name=main,accounts[0].token=x,accounts[0].tokenFile=/y", `accounts: "main" needs one of secret, tokenFile and token`},
		{"accounts[0].name=main,accounts[0].token=x,accounts[1].name=main,accounts[1].token=y", `there are two accounts "main"`},
		{"accounts[0].name=a,accounts[0].token=x,accounts[1].name=b,accounts[1].secret.name=y,accounts[1].secret.key=z", "no Secret beside an existing one"},
		{"accounts[0].name=a,accounts[0].secret.name=y,accounts[0].secret.key=z,accounts[1].name=b,accounts[1].secret.name=y,accounts[1].secret.key=z", `key "z" of Secret "y" is used twice`},
		{"demo=true", "config.api.base_url: must be empty with demo"},
		{"demo=true,accounts[0].name=main,accounts[0].token=x", "accounts: must be empty with demo"},
		{"image.repository=", "/image/repository"},
		{"config.api.base_url=", "config.api.base_url: is required"},
		{"replicaCount=3", "/replicaCount"},
		{"replicaCount=2,shards=2", "replicaCount: must be 1 with shards"},
		{"shards=0", "/shards"},
		{"shards=2 --kube-version=1.27.9", "shards: need Kubernetes 1.28 or later"},
		{"web.tls=true", "web.configSecret.name: is required"},
		{"service.type=ExternalName", "/service/type"},
		{"service.nodePort=30000", "service.nodePort: needs service.type NodePort or LoadBalancer"},
		{"service.externalTrafficPolicy=Local", "service.externalTrafficPolicy: needs service.type NodePort or LoadBalancer"},
		{"service.type=NodePort,service.loadBalancerIP=192.0.2.1", "service.loadBalancerIP: needs service.type LoadBalancer"},
		{"service.type=NodePort,service.loadBalancerClass=x", "service.loadBalancerClass: needs service.type LoadBalancer"},
		{"service.loadBalancerSourceRanges={192.0.2.0/24}", "service.loadBalancerSourceRanges: needs service.type LoadBalancer"},
		{"service.loadBalancerSourceRanges={192.0.2.1}", "/service/loadBalancerSourceRanges/0"},
		{"serviceMonitor.interval=15", "/serviceMonitor/interval"},
		{"serviceMonitor.sampleLimit=-1", "/serviceMonitor/sampleLimit"},
		{"serviceMonitor.targetLabels=x", "/serviceMonitor/targetLabels"},
		{"prometheusRule.disabledAlerts={ServerRentalNothing}", `there is no alert "ServerRentalNothing"`},
		{"networkPolicy.enabled=true,networkPolicy.from=null", "networkPolicy.from: must not be empty"},
		{"livenessProbe.httpGet.path=/", "httpGet"},
		{"dnsPolicy=ClusterLast", "/dnsPolicy"},
		{"hostAliases[0].ip=192.0.2.1", "hostnames"},
		{"extraObjects[0]=5", "/extraObjects/0"},
		{"extraArgs={--web.listen-address=:80}", "/extraArgs/0"},
		{"extraArgs={--total-shards=3}", "/extraArgs/0"},
		{"extraVolumes.x=y", "/extraVolumes"},
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
		"demo":       {"simulated provider"},
		"token":      {"trials"},
		"pair":       {"rental-tokens", "guest-token", "main, lab"},
		"tls":        {"port-forward service/rental-server-rental-exporter 10170:443\n", "https://localhost:10170/", "rollout status deployment/rental-server-rental-exporter"},
		"shards":     {"3 shards, public data by rental-server-rental-exporter-0", "statefulset/rental-server-rental-exporter", "port-forward pod/rental-server-rental-exporter-0 10170\n"},
		"everything": {"port-forward pod/rental-exporter-0 10170\n"},
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
