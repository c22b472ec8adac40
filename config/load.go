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

// file is the configuration file.
type file struct {
	Config       `yaml:",inline"`
	AccountFiles []string                           `yaml:"account_files"`
	Settings     map[collectorName]collectorSetting `yaml:"collectors"`
}

// collectorSetting holds the settings of one collector that the file has.
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

// integer is a number that YAML's package may not round.
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
	used   map[[2]string]string
	faulty map[Account]bool // those with a fault
	// unreadable is whether a directory of account files cannot be read.
	unreadable bool
}

// control matches control characters, such as a line break in a key or in the name of a file.
var control = regexp.MustCompile(`\p{Cc}`)

// add adds a fault.
func (l *loader) add(place, format string, args ...any) {
	l.errs = append(l.errs, errors.New(Line(place+": "+fmt.Sprintf(format, args...))))
}

// Line returns a text without control characters, so that it is one line.
func Line(text string) string { return control.ReplaceAllString(text, " ") }

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
	content, err := readFile(name, maxFile)
	if err != nil {
		l.add(l.flags.configFile.place(), "%s: %s", name, err)
		return false
	}
	messages := checkNodes(content)
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	if err := decoder.Decode(&l.file); err != nil && !errors.Is(err, io.EOF) {
		messages = append(YAMLErrors(err), messages...)
	}
	for _, message := range messages {
		l.add(name, "%s", message)
	}
	return len(messages) == 0
}

// maxFile bounds the configuration file: it is far above one with 100,000 accounts.
const maxFile = 32 << 20

// checkNodes returns the faults that YAML's package ignores when it decodes into a struct.
func checkNodes(content []byte) []string {
	var first, second yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	if decoder.Decode(&first) != nil {
		return nil // decoding reports it
	}
	messages := nodeFaults(&first)
	switch err := decoder.Decode(&second); {
	case err == nil:
		messages = append(messages, fmt.Sprintf("line %d: second document: must be one document", second.Line))
	case !errors.Is(err, io.EOF):
		messages = append(messages, YAMLErrors(err)...)
	}
	return messages
}

// octal matches numbers that YAML 1.1 reads as octal, and YAML 1.2 as decimal.
var octal = regexp.MustCompile(`^[-+]?0[0-9_]+$`)

// nodeFaults returns the faults in a node and below it.
func nodeFaults(n *yaml.Node) (messages []string) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!int" && octal.MatchString(n.Value) {
		messages = append(messages, fmt.Sprintf("line %d: number with a leading zero: must be without it, or in quotes if it is a text", n.Line))
	}
	for _, child := range n.Content {
		value := child
		if child.Kind == yaml.AliasNode {
			value = child.Alias
		}
		if n.Kind == yaml.SequenceNode && value.ShortTag() == "!!null" {
			messages = append(messages, fmt.Sprintf("line %d: null in a list", child.Line))
		}
		messages = append(messages, nodeFaults(child)...)
	}
	return messages
}

// Parts of messages of the YAML packages: values of the file, which may be secrets, and names of
// Go types, which nobody else knows.
var (
	repeated = regexp.MustCompile("(?s) `.{0,10}?`( into )| '[^']{2,}'")
	typeName = regexp.MustCompile(`(?s) (into|in type) .*$`)
)

// YAMLErrors returns a message for each fault that a YAML package found in a file, without the
// values that it repeats.
func YAMLErrors(err error) []string {
	text := repeated.ReplaceAllString(err.Error(), "$1")
	text = strings.TrimPrefix(strings.TrimPrefix(text, "yaml: "), "unmarshal errors:\n  ")
	messages := strings.Split(text, "\n  ")
	for i, message := range messages {
		messages[i] = typeName.ReplaceAllString(message, "")
	}
	return messages
}
