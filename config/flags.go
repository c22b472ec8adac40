package config

import (
	"fmt"

	"github.com/alecthomas/kingpin/v2"
)

// tokenEnvar holds a token itself. There is no such flag, because a command
// line is readable by every local user.
const tokenEnvar = "SERVER_RENTAL_API_TOKEN"

// Flags is what was given on the command line. Its values are valid once the
// application they were added to has parsed its arguments.
type Flags struct {
	baseURL, tokenFile, configFile option

	check, demo bool

	specs []CollectorSpec
	// switches has one entry for each spec, in the same order.
	switches []toggle
}

// option is a flag with an environment variable in its stead.
type option struct {
	flag, envar, value string
	set                bool
}

// given is also true for an explicit empty value, which is a fault to report
// and not a default to fall back on.
func (o *option) given() bool { return o.set || o.value != "" }

// place names the flag or the variable, whichever the value came from.
func (o *option) place() FieldError {
	if o.set {
		return FieldError{Field: o.flag}
	}
	return FieldError{Field: o.envar}
}

// toggle is a --[no-]collector.NAME flag; it counts only where it was given.
type toggle struct{ on, set bool }

// AddFlags adds the configuration's flags, one of them for each collector.
func AddFlags(app *kingpin.Application, specs []CollectorSpec) *Flags {
	f := &Flags{specs: specs, switches: make([]toggle, len(specs))}
	add := func(o *option, name, envar, placeholder, help string) {
		o.flag, o.envar = "--"+name, envar
		app.Flag(name, help).Envar(envar).PlaceHolder(placeholder).IsSetByUser(&o.set).StringVar(&o.value)
	}
	add(&f.baseURL, "api.base-url", "SERVER_RENTAL_API_BASE_URL", "URL",
		"Base URL of the rental API, ending in /api/v1.")
	add(&f.tokenFile, "api.token-file", "SERVER_RENTAL_API_TOKEN_FILE", "FILE",
		"File with the API token of one account, which is named default. The token itself may be in $"+tokenEnvar+" instead.")
	add(&f.configFile, "config.file", "SERVER_RENTAL_CONFIG_FILE", "FILE",
		"Configuration file (YAML).")
	app.Flag("config.check", "Check the configuration, print every fault and exit.").BoolVar(&f.check)
	app.Flag("demo", "Export a simulated rental API that runs in the same process: no account, no network.").BoolVar(&f.demo)
	for i, s := range specs {
		help := "Export " + s.Help
		if s.Account {
			help += ", for each account"
		}
		app.Flag("collector."+s.Name, help+" (default: enabled).").
			IsSetByUser(&f.switches[i].set).BoolVar(&f.switches[i].on)
	}
	return f
}

// ConfigFile is the configuration file's path, empty where there is none.
func (f *Flags) ConfigFile() string { return f.configFile.value }

// Check reports whether only a check of the configuration is wanted.
func (f *Flags) Check() bool { return f.check }

// Demo reports whether a simulated API is to be served and exported.
func (f *Flags) Demo() bool { return f.demo }

// Load reads environment and file anew, at start and at each reload. The error
// is nil or FieldErrors.
func (f *Flags) Load(getenv func(string) string) (*Config, error) {
	if !f.baseURL.given() && !f.configFile.given() && !f.demo {
		return nil, FieldErrors{{Problem: "nothing to export: set --api.base-url or --config.file, or start with --demo for a simulated provider"}}
	}
	l := newLoader(f)
	l.fromEnvironment(getenv)
	readable := l.fromFile()
	l.fromFlags()
	// What a file that cannot be read leaves out is not missing.
	if readable {
		l.checkAPI()
		l.checkCollectors()
	}
	if err := l.errs.err(); err != nil {
		return nil, err
	}
	return l.config, nil
}

// conflictsWithDemo is the fault of everything that a demo has of its own.
func conflictsWithDemo(what string) string {
	return fmt.Sprintf("not together with --demo, which brings its own %s", what)
}
