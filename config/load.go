package config

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"time"

	promconfig "github.com/prometheus/common/config"
	"go.yaml.in/yaml/v3"
)

// loader holds the state of one call of Load. Unlike decoding a YAML file into structs,
// its errors have the line and the full path of a setting.
type loader struct {
	flags  *Flags
	config *Config
	file   string
	errs   fieldErrors
	// lines has the line of each setting in the file by path.
	lines map[string]int
	// budget is how many more keys and values may be visited. Otherwise aliases
	// of aliases let a small file grow without bound.
	budget int
	// baseURLPosition is where the base URL in use was set.
	baseURLPosition Position
	// used maps names and tokens in use, with their kinds, to the field that set them first.
	used map[[2]string]string
}

func newLoader(f *Flags) *loader {
	l := &loader{
		file:   f.configFile.value,
		lines:  map[string]int{},
		budget: maxValues,
		flags:  f,
		used:   map[[2]string]string{},
		config: &Config{
			API: API{
				Timeout:   10 * time.Second,
				HTTP:      promconfig.DefaultHTTPClientConfig,
				RateLimit: RateLimit{Public: 30, Account: 60},
			},
			Collectors: make(map[string]Collector, len(f.resources)),
		},
	}
	for _, r := range f.resources {
		l.config.Collectors[r.Name] = Collector{Enabled: !f.disableDefaults, Interval: r.Interval}
	}
	return l
}

// demoConflict is the error for a setting that --demo provides itself.
const demoConflict = "conflicts with --demo: must not be set, because the demo has its own %s"

// loadFile reports whether the file is a readable YAML mapping, or there is none.
func (l *loader) loadFile() bool {
	if !l.flags.configFile.isSet() {
		return true
	}
	content, err := (&file{path: l.file, limit: maxFile}).read()
	if err != nil {
		l.errs.add(Position{File: l.file, Field: l.flags.configFile.position().Field}, "%s", err)
		return false
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	var first, second yaml.Node
	if err = decoder.Decode(&first); err == nil {
		err = decoder.Decode(&second)
	}
	switch {
	case err == nil:
		l.errs.add(Position{File: l.file, Line: second.Line}, "multiple YAML documents: must be one")
	case !errors.Is(err, io.EOF):
		l.addSyntaxError(err, content)
	case len(first.Content) > 0:
		root := first.Content[0]
		l.decode(Position{File: l.file, Line: root.Line}, root, reflect.ValueOf(l.config).Elem())
	}
	return !l.errs.has("")
}
