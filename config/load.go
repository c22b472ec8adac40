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
	"strconv"
	"strings"

	promconfig "github.com/prometheus/common/config"
	"go.yaml.in/yaml/v3"

	"github.com/server-rental-exporter/server_rental_exporter/collector"
)

type file struct {
	Config   `yaml:",inline"`
	Settings map[collectorName]collectorSetting `yaml:"collectors"`
}

type collectorSetting struct {
	Enabled         *bool   `yaml:"enabled"`
	Interval        *string `yaml:"interval"`
	MaxAge          *string `yaml:"max_age"`
	SoldOutInterval *string `yaml:"sold_out_interval"`
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

// integer is an int that is never rounded, unlike that of YAML's package.
type integer int

// UnmarshalYAML implements yaml.Unmarshaler.
func (i *integer) UnmarshalYAML(n *yaml.Node) error {
	value, err := strconv.Atoi(n.Value)
	if err != nil {
		return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: cannot unmarshal %s", n.Line, n.ShortTag())}}
	}
	*i = integer(value)
	return nil
}

// HTTP holds the settings of an HTTP client. Two have no effect: follow_redirects, because a token
// must not leave the base URL's origin, and enable_http2, because each request has a connection of its
// own.
type HTTP struct {
	promconfig.HTTPClientConfig
	invalid error // the outcome of the validation
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

// loader turns a file into a configuration. It holds the state of one call of Load.
type loader struct {
	file
	flags *Flags
	errs  []error
	used  map[[2]string]string // maps a kind and a name to the place that set the name first
}

func (l *loader) add(place, format string, args ...any) {
	l.errs = append(l.errs, errors.New(Line(place+": "+fmt.Sprintf(format, args...))))
}

var control = regexp.MustCompile(`\p{Cc}`)

// Line returns a text as one line: control characters become spaces.
func Line(text string) string { return control.ReplaceAllString(text, " ") }

// at returns the place of a setting in the file.
func (l *loader) at(path string) string {
	return l.flags.configFile + ": " + path
}

// join returns a path of the file relative to its directory.
func (l *loader) join(path string) string {
	return promconfig.JoinDir(filepath.Dir(l.flags.configFile), path)
}

// checkRange returns whether a setting is between two bounds. If not, it adds a fault.
func checkRange[T cmp.Ordered](l *loader, path string, value, least, most T) bool {
	if value >= least && value <= most {
		return true
	}
	l.add(l.at(path), "%v is out of range: must be from %v to %v", value, least, most)
	return false
}

// decode reads the file, if there is one. It returns whether the file has the right form.
func (l *loader) decode() bool {
	name := l.flags.configFile
	if name == "" {
		return true
	}
	content, err := readFile(name, maxFile)
	if err != nil {
		l.add("--config.file", "%s: %s", name, err)
		return false
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	messages := YAMLErrors(decoder.Decode(&l.file))
	var nodes, second yaml.Node
	if yaml.Unmarshal(content, &nodes) == nil { // else there is a message already
		messages = append(messages, nodeFaults(&nodes)...)
		err := decoder.Decode(&second)
		if err == nil {
			err = fmt.Errorf("line %d: second document: must be one document", second.Line)
		}
		messages = append(messages, YAMLErrors(err)...)
	}
	for _, message := range messages {
		l.add(name, "%s", message)
	}
	return len(messages) == 0
}

// nodeFaults returns the faults in a node and below it that YAML's package ignores when it decodes
// into a struct.
func nodeFaults(n *yaml.Node) (messages []string) {
	for _, child := range n.Content {
		if n.Kind == yaml.SequenceNode && child.ShortTag() == "!!null" {
			messages = append(messages, fmt.Sprintf("line %d: null in a list", child.Line))
		}
		messages = append(messages, nodeFaults(child)...)
	}
	return messages
}

// Messages of YAML packages repeat values of the file, which may be secrets, and name Go types.
var (
	repeated = regexp.MustCompile("(?s) `.{0,10}?`( into )| '[^']{2,}'")
	typeName = regexp.MustCompile(`(?s) (into|in type) .*$`)
)

// YAMLErrors returns a message for each fault that a YAML package found, without the values that it
// repeats; none for nil and io.EOF.
func YAMLErrors(err error) []string {
	if err == nil || errors.Is(err, io.EOF) {
		return nil
	}
	text := repeated.ReplaceAllString(err.Error(), "$1")
	text = strings.TrimPrefix(strings.TrimPrefix(text, "yaml: "), "unmarshal errors:\n  ")
	messages := strings.Split(text, "\n  ")
	for i, message := range messages {
		messages[i] = typeName.ReplaceAllString(message, "")
	}
	return messages
}
