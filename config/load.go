package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	promconfig "github.com/prometheus/common/config"
	"go.yaml.in/yaml/v3"

	"github.com/server-rental-exporter/server_rental_exporter/collector"
)

// file is the configuration file.
type file struct {
	Config       `yaml:",inline"`
	AccountFiles []string                           `yaml:"account_files"`
	Settings     map[collectorName]collectorSetting `yaml:"collectors"`
}

// collectorSetting holds the settings of one collector that the file has.
type collectorSetting struct {
	Enabled         *bool          `yaml:"enabled"`
	Interval        *time.Duration `yaml:"interval"`
	MaxAge          *time.Duration `yaml:"max_age"`
	SoldOutInterval *time.Duration `yaml:"sold_out_interval"`
}

// collectorName is the name of an existing collector.
type collectorName string

// UnmarshalYAML implements yaml.Unmarshaler.
func (c *collectorName) UnmarshalYAML(n *yaml.Node) error {
	if !slices.ContainsFunc(collector.Resources(), func(r collector.Resource) bool { return r.Name == n.Value }) {
		return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: collector %s not found", n.Line, n.Value)}}
	}
	*c = collectorName(n.Value)
	return nil
}

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

// loader holds the state of one call of Load. It makes the file the configuration.
type loader struct {
	file
	flags *Flags
	errs  []error
	// used maps names in use, with their kinds, to the place that set them first.
	used map[[2]string]string
}

// control matches control characters, such as a line break in a key or in the name of a file.
var control = regexp.MustCompile(`\p{Cc}`)

// add adds a fault.
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

// checkRange reports whether a setting is between two bounds. If not, it adds an error.
func checkRange[T cmp.Ordered](l *loader, path string, value, least, most T) bool {
	if value >= least && value <= most {
		return true
	}
	l.add(l.at(path), "%v is out of range: must be from %v to %v", value, least, most)
	return false
}

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
	for _, message := range YAMLErrors(err) {
		l.add(name, "%s", message)
	}
	return false
}

// repeated matches parts of a file in messages of the YAML packages. They may be secrets.
var repeated = regexp.MustCompile("(?s) `.{0,10}?`( into )|(anchor) '.*'")

// YAMLErrors returns a message for each fault that a YAML package found in a file, without the
// values that it repeats.
func YAMLErrors(err error) []string {
	text := repeated.ReplaceAllString(err.Error(), "$1$2")
	text = strings.TrimPrefix(strings.TrimPrefix(text, "yaml: "), "unmarshal errors:\n  ")
	return strings.Split(text, "\n  ")
}
