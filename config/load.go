package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	promconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v3"

	"server_rental_exporter/collector"
)

// File is the configuration file.
type File struct {
	API          API                             `yaml:"api"`
	Accounts     []Account                       `yaml:"accounts"`
	AccountFiles []string                        `yaml:"account_files"`
	Collectors   map[CollectorName]CollectorFile `yaml:"collectors"`
	Watches      []collector.Watch               `yaml:"watches"`
}

// CollectorFile holds the settings of one collector that the file has.
type CollectorFile struct {
	Enabled         *bool     `yaml:"enabled"`
	Interval        *Duration `yaml:"interval"`
	MaxAge          *Duration `yaml:"max_age"`
	SoldOutInterval *Duration `yaml:"sold_out_interval"`
}

// CollectorName is the name of an existing collector.
type CollectorName string

// UnmarshalYAML implements yaml.Unmarshaler.
func (c *CollectorName) UnmarshalYAML(n *yaml.Node) error {
	if !slices.ContainsFunc(collector.Resources(), func(r collector.Resource) bool { return r.Name == n.Value }) {
		return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: collector %s not found", n.Line, n.Value)}}
	}
	*c = CollectorName(n.Value)
	return nil
}

// Duration is written as in the configuration of Prometheus: 30s, 5m, 1h30m or 1d.
type Duration time.Duration

// UnmarshalYAML implements yaml.Unmarshaler.
func (d *Duration) UnmarshalYAML(n *yaml.Node) error {
	parsed, err := model.ParseDuration(n.Value)
	if err != nil {
		return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: cannot unmarshal %s into a duration like 30s, 5m, 1h30m or 1d", n.Line, n.ShortTag())}}
	}
	*d = Duration(parsed)
	return nil
}

// String returns the duration as it is written.
func (d Duration) String() string { return model.Duration(d).String() }

// HTTP holds the settings of an HTTP client. Its follow_redirects has no effect: redirects
// are never followed, because a token must not leave the base URL's origin.
type HTTP struct {
	promconfig.HTTPClientConfig
	invalid error // what validation found
}

// UnmarshalYAML keeps an error of validation, which would hide those of the rest of the file.
func (h *HTTP) UnmarshalYAML(unmarshal func(any) error) error {
	err := unmarshal(&h.HTTPClientConfig)
	if typeErr, ok := errors.AsType[*yaml.TypeError](err); ok {
		return typeErr
	}
	h.invalid = err
	return nil
}

// loader holds the state of one call of Load.
type loader struct {
	flags  *Flags
	file   File
	config *Config
	errs   []error
	// baseURLPlace is where the base URL in use was set.
	baseURLPlace string
	// used maps names in use, with their kinds, to the place that set them first.
	used map[[2]string]string
}

func newLoader(f *Flags) *loader {
	return &loader{
		flags:  f,
		used:   map[[2]string]string{},
		config: &Config{Collectors: make(map[string]Collector, len(f.resources))},
		file: File{
			API: API{
				Timeout:   Duration(10 * time.Second),
				HTTP:      HTTP{HTTPClientConfig: promconfig.DefaultHTTPClientConfig},
				RateLimit: RateLimit{Public: 30, Account: 60},
			},
		},
	}
}

// control is what a key of the file or the name of a file may contain, such as a line break.
var control = regexp.MustCompile(`\p{Cc}`)

func (l *loader) add(place, format string, args ...any) {
	text := place + ": " + fmt.Sprintf(format, args...)
	l.errs = append(l.errs, errors.New(control.ReplaceAllString(text, " ")))
}

// at returns the place of a setting in the file.
func (l *loader) at(path string) string {
	return l.flags.configFile.value + ": " + path
}

// join returns a path of the file relative to its directory.
func (l *loader) join(path string) string {
	return promconfig.JoinDir(filepath.Dir(l.flags.configFile.value), path)
}

// repeated is what messages of package yaml repeat of the file, which may be a secret.
var repeated = regexp.MustCompile("(?s) `.*`|(anchor) '.*'")

// decode reads the file. It reports whether the file has the right form, or there is none.
func (l *loader) decode() bool {
	if !l.flags.configFile.isSet() {
		return true
	}
	name := l.flags.configFile.value
	content, err := readFile(name)
	if err != nil {
		l.add(l.flags.configFile.place(), "%s: %s", name, err)
		return false
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	err = decoder.Decode(&l.file)
	if err == nil || errors.Is(err, io.EOF) {
		return true
	}
	messages := []string{err.Error()}
	if typeErr, ok := errors.AsType[*yaml.TypeError](err); ok {
		messages = typeErr.Errors
	}
	for _, message := range messages {
		l.add(name, "%s", repeated.ReplaceAllString(strings.TrimPrefix(message, "yaml: "), "$1"))
	}
	return false
}
