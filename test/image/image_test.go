//go:build e2e

// Package image tests the container images: it builds them with buildah, looks at
// what they hold, and runs the program in them as a container engine would.
package image

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/repo"
)

func TestMain(m *testing.M) { simtest.Main(m) }

// store is a storage of images and containers that only one test uses.
type store struct {
	t    *testing.T
	args []string // the program buildah and its global options
}

// newStore returns an empty storage, which is removed at the end of the test.
func newStore(t *testing.T) *store {
	dir := t.TempDir()
	s := &store{t, []string{"buildah", "--root", dir + "/root", "--runroot", dir + "/run", "--storage-driver", "vfs"}}
	t.Cleanup(func() { s.run("rm", "--all") }) // unmounts them
	return s
}

// run runs buildah and returns its output.
func (s *store) run(args ...string) string {
	s.t.Helper()
	return run(s.t, append(s.args, args...)...)
}

// run runs a command in the repository and returns its output.
func run(t *testing.T, args ...string) string {
	t.Helper()
	return repo.Run(t, simtest.Root(t), args...)
}

// addBase makes the base image that the Dockerfile names out of programs of this
// machine: Go, make, a shell and the certificates.
func (s *store) addBase(arch string) {
	s.t.Helper()
	from := regexp.MustCompile(`(?m)^FROM --platform=\$BUILDPLATFORM (\S+) AS build$`).FindStringSubmatch(repo.Read(s.t, "Dockerfile"))
	if from == nil {
		s.t.Fatal("Dockerfile: no FROM of the stage build")
	}
	container := s.run("from", "scratch")
	mount := s.run("mount", container)
	run(s.t, "bash", "-euc", `cd "$0"
		mkdir -p usr/local/go etc/ssl/certs bin tmp root
		cp -RL "$(go env GOROOT)"/{LICENSE,VERSION,go.env,bin,pkg,src,lib} usr/local/go
		cp -L /etc/ssl/certs/ca-certificates.crt etc/ssl/certs
		cp -L /bin/{busybox,make} bin
		for applet in sh cat date; do ln -s busybox "bin/$applet"; done
		ldd /bin/make | grep -o '/[^ ]*' | xargs cp -L --parents -t .`, mount)
	s.run("config", "--arch", arch, "--env", "PATH=/usr/local/go/bin:/bin", "--env", "GOPATH=/go", "--env", "HOME=/root", container)
	s.run("commit", container, from[1])
	s.run("rm", container)
}

// image is what the tests look at.
type image struct {
	Config struct {
		User        string
		Entrypoint  []string
		Env         []string
		Labels      map[string]string
		Healthcheck struct{ Test []string }
	} `json:"config"`
	Architecture string
	mount        string // directory with its files
}

// build makes an image with the Go modules of this machine: with make image for this
// platform, and as docker build does, without arguments, for the other one.
func (s *store) build(arch string) image {
	s.t.Helper()
	s.addBase(arch)
	cache := func(variable, target string) string {
		return "-v " + run(s.t, "go", "env", variable) + ":" + target + ":rw"
	}
	flags := "--isolation chroot --pull-never --network host " + cache("GOMODCACHE", "/go/pkg/mod") + " " + cache("GOCACHE", "/root/.cache/go-build")
	if arch == runtime.GOARCH {
		run(s.t, "make", "image", "VERSION=1.2.3", "BUILDAH="+strings.Join(s.args, " "), "BUILDAH_FLAGS="+flags+" -t image")
	} else {
		s.run(slices.Concat([]string{"bud", "--format", "docker", "--os", "linux", "--arch", arch, "-t", "image"}, strings.Fields(flags), []string{"."})...)
	}
	var inspected struct{ Docker image }
	if err := json.Unmarshal([]byte(s.run("inspect", "--type", "image", "image")), &inspected); err != nil {
		s.t.Fatal(err)
	}
	i := inspected.Docker
	i.mount = s.run("mount", s.run("from", "--pull-never", "image"))
	return i
}

func TestImage(t *testing.T) {
	if os.Getuid() != 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("needs root")
		}
		t.Skip("needs root, to mount an image and to change the user")
	}
	for _, program := range []string{"buildah", "busybox", "make"} {
		repo.Program(t, program)
	}
	t.Setenv("TMPDIR", t.TempDir()) // for buildah's caches
	t.Setenv("TZ", "UTC")
	for _, arch := range []string{"amd64", "arm64"} {
		t.Run(arch, func(t *testing.T) {
			i := newStore(t).build(arch)
			checkLabels(t, i, arch)
			checkFiles(t, i)
			if arch == runtime.GOARCH {
				checkRun(t, i)
			}
		})
	}
}

// checkLabels compares what make image says of a build, and docker build does not, which has no git.
func checkLabels(t *testing.T, i image, arch string) {
	t.Helper()
	want := []string{arch, strings.TrimSpace(repo.Read(t, "VERSION")), "", ""}
	if arch == runtime.GOARCH {
		want = []string{arch, "1.2.3", run(t, "git", "rev-parse", "HEAD"), run(t, "git", "log", "-1", "--format=%cd", "--date=format-local:%FT%TZ")}
	}
	got := []string{i.Architecture}
	for _, name := range []string{"version", "revision", "created"} {
		got = append(got, i.Config.Labels["org.opencontainers.image."+name])
	}
	simtest.AssertEqual(t, "architecture, version, revision and time", got, want)
}

// checkFiles looks for files that do not belong there, and for those that the user of
// the image could change.
func checkFiles(t *testing.T, i image) {
	t.Helper()
	files := strings.Split(run(t, "find", i.mount, "-not", "-type", "d", "-printf", "/%P %M\n"), "\n")
	slices.Sort(files)
	simtest.AssertEqual(t, "files", files, []string{
		"/LICENSE -rw-r--r--", "/THIRD_PARTY_LICENSES -rw-r--r--", "/etc/ssl/certs/ca-certificates.crt -rw-r--r--", "/server_rental_exporter -rwxr-xr-x",
	})
	simtest.AssertEqual(t, "licences", run(t, "cat", i.mount+"/THIRD_PARTY_LICENSES"), run(t, "go", "run", "./packaging/licenses"))
}

// checkRun runs the program on the files of the image alone, as its user, and then its
// health check in the same way.
func checkRun(t *testing.T, i image) {
	t.Helper()
	address := simtest.FreeAddress(t)
	var user syscall.Credential
	if _, err := fmt.Sscanf(i.Config.User, "%d:%d", &user.Uid, &user.Gid); err != nil || user.Uid == 0 {
		t.Fatalf("got user %q, want ids that are not those of root", i.Config.User)
	}
	command := func(ctx context.Context, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Dir = "/"
		cmd.Env = slices.Concat(i.Config.Env, []string{"SERVER_RENTAL_WEB_LISTEN_ADDRESS=" + address})
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: i.mount, Credential: &user}
		return cmd
	}
	healthcheck := func() string {
		out, _ := command(t.Context(), i.Config.Healthcheck.Test[1:]...).CombinedOutput() // its status is in the output
		return string(out)
	}
	if got := healthcheck(); !strings.HasPrefix(got, "unhealthy: "+address) {
		t.Errorf("health check before the start: got %q", got)
	}
	p := simtest.StartCommand(t, command(context.Background(), slices.Concat(i.Config.Entrypoint, []string{"--demo"})...))
	p.WaitServing()
	p.WaitReady()
	simtest.AssertEqual(t, "health check", healthcheck(), "healthy\n")
	page := p.Scrape()
	build := page.WithPrefix("server_rental_exporter_build_info{")
	if len(build) != 1 || len(page.WithPrefix("server_rental_plan_info{")) == 0 {
		t.Errorf("the metrics are not complete: %v", build)
	}
	for series := range build {
		simtest.AssertEqual(t, "version and revision",
			[]string{simtest.Label(series, "version"), simtest.Label(series, "revision")}, []string{"1.2.3", run(t, "git", "rev-parse", "HEAD")})
	}
	simtest.AssertEqual(t, "signal", p.Cmd.Process.Signal(syscall.SIGTERM), nil)
	simtest.AssertEqual(t, "exit status", p.Wait(), 0)
}
