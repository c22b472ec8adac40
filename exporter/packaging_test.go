package exporter

import (
	"io"
	"os/exec"
	"strings"
	"testing"
	"text/template"

	"github.com/alecthomas/kingpin/v2"

	"server_rental_exporter/internal/simulator/simtest"
)

// TestGoldenPackaging compares the manual page and the completions of the packages with
// the flags.
func TestGoldenPackaging(t *testing.T) {
	t.Parallel()
	simtest.Golden(t, "../packaging/server_rental_exporter.1", executeFlags(t, "../packaging/templates/man.tmpl"))
	simtest.Golden(t, "../packaging/completion/server_rental_exporter.fish", executeFlags(t, "../packaging/templates/fish.tmpl"))
	bash := output(t, "--completion-script-bash")
	simtest.Golden(t, "../packaging/completion/server_rental_exporter.bash", strings.TrimSpace(bash)+"\n")
	// The script is the body of an autoloaded function. Without the last line, the first
	// completion of a shell would define the function but not call it.
	zsh := output(t, "--completion-script-zsh")
	simtest.Golden(t, "../packaging/completion/server_rental_exporter.zsh",
		strings.TrimSpace(zsh)+"\n\n[[ $funcstack[1] != _"+name+" ]] || _"+name+" \"$@\"\n")
}

// output returns what the program prints in a process of its own: kingpin does not
// write completions to the configured output.
func output(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(simtest.Binary(t), args...).Output()
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return string(out)
}

// executeFlags executes a template with the flags.
func executeFlags(t *testing.T, path string) string {
	t.Helper()
	// isSwitch reports whether a flag is shown with its negation.
	isSwitch := func(f *kingpin.FlagModel) bool { return strings.HasSuffix(f.Help, enabledByDefault) }
	tmpl, err := template.New("").Funcs(template.FuncMap{
		"switch":     isSwitch,
		"paragraphs": func(s string) []string { return strings.Split(s, "\n\n") },
		"escape":     strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`).Replace,
		"quote":      func(s string) string { return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'" },
		"file":       func(f *kingpin.FlagModel) bool { return strings.HasSuffix(f.Name, "file") },
		"summary": func(f *kingpin.FlagModel) string {
			sentence, _, _ := strings.Cut(strings.TrimSuffix(f.Help, enabledByDefault), ". ")
			return strings.TrimSuffix(sentence, ".")
		},
		"sentence": func(s string) string { return strings.TrimSuffix(s, ".") + "." },
		"negated":  func(s string) string { return "Do not " + strings.ToLower(s[:1]) + s[1:] },
		"value": func(f *kingpin.FlagModel) string {
			return strings.Replace(f.FormatPlaceHolder(), `""`, "FILE", 1) // an empty default says nothing
		},
		"values": func(f *kingpin.FlagModel) string {
			return strings.Join(map[string][]string{"log.level": logLevels(), "log.format": logFormats()}[f.Name], " ")
		},
	}).ParseFiles(path)
	if err != nil {
		t.Fatal(err)
	}
	app, _ := newApplication(io.Discard)
	var b strings.Builder
	if err := tmpl.Templates()[0].Execute(&b, app.Model()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// enabledByDefault ends the help of a flag that disables what is enabled.
const enabledByDefault = " (default: enabled)."
