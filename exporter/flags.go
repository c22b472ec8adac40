package exporter

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kingpin/v2"
	promconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/version"
	toolkit "github.com/prometheus/exporter-toolkit/web"
	"github.com/prometheus/exporter-toolkit/web/kingpinflag"

	"github.com/server-rental-exporter/server_rental_exporter/config"
	"github.com/server-rental-exporter/server_rental_exporter/exporter/demo"
	"github.com/server-rental-exporter/server_rental_exporter/simulator"
	"github.com/server-rental-exporter/server_rental_exporter/web"
)

// options holds the values of the flags.
type options struct {
	*config.Flags
	web           *toolkit.FlagConfig
	telemetryPath string

	disableExporterMetrics bool
	overview               bool
	lifecycle              bool
	discovery              bool
	once                   bool
	health                 bool
	logLevel               string
	logFormat              string
	printed                bool     // whether help or version was printed, and nothing else is to do
	variables              []string // environment variables that are in use
	unknown                error    // has a line for each variable that looks like one of ours and is none
}

// The values of --log.level and --log.format.
func logLevels() []string  { return []string{"debug", "info", "warn", "error"} }
func logFormats() []string { return []string{"logfmt", "json"} }

const description = `Prometheus exporter for the Dedicated Server Rental API: plan stock and prices, component states, balances, top-ups and servers. The data is fetched in the background, within the API's rate limits; scrapes never cause a request.

Use --demo to try it without an account, --config.check to check a configuration, and --once to print all metrics and exit.

Off by default are `

// newApplication defines the flags.
func newApplication(stdout io.Writer) (*kingpin.Application, *options) {
	app := kingpin.New(name, description)
	app.Version(version.Print(name))
	app.HelpFlag.Short('h')
	app.UsageWriter(stdout)
	o := &options{Flags: config.AddFlags(app)}
	app.Flag("once", "Fetch everything once, print the metrics and exit; status 1 if a collector failed. For cron and the textfile collector.").BoolVar(&o.once)
	app.Flag("healthcheck", "Ask the exporter that runs on this machine with the same --web flags or variables for /-/healthy and exit; status 1 if it does not serve. For containers.").BoolVar(&o.health)
	o.web = kingpinflag.AddFlags(app, ":10170")
	// A container's health check has its environment, but not its arguments.
	app.GetFlag("web.listen-address").Envar("SERVER_RENTAL_WEB_LISTEN_ADDRESS").
		Help("Address on which to serve, like :9100 or [::1]:9100. Repeatable for several addresses.")
	app.GetFlag("web.config.file").Envar("SERVER_RENTAL_WEB_CONFIG_FILE")
	app.Flag("web.telemetry-path", "Path under which the metrics are served.").Default("/metrics").StringVar(&o.telemetryPath)
	app.Flag("web.disable-exporter-metrics", "Leave out the metrics of the process: go_*, process_* and promhttp_*.").BoolVar(&o.disableExporterMetrics)
	app.Flag("web.overview", "Show the provider's and the accounts' data on the landing page (default: enabled).").Default("true").BoolVar(&o.overview)
	app.Flag("web.enable-lifecycle", "Allow POST /-/reload.").BoolVar(&o.lifecycle)
	app.Flag("web.enable-service-discovery", "Serve /sd/servers, which exposes the servers' addresses.").BoolVar(&o.discovery)
	app.Flag("log.level", "Only log messages of this severity or above: "+strings.Join(logLevels(), ", ")+".").Default("info").HintOptions(logLevels()...).StringVar(&o.logLevel)
	app.Flag("log.format", "Format of log messages: "+strings.Join(logFormats(), ", ")+".").Default("logfmt").HintOptions(logFormats()...).StringVar(&o.logFormat)
	var off []string // kingpin shows --[no-]NAME for all
	for _, f := range app.Model().Flags {
		o.variables = append(o.variables, f.Envar)
		if f.IsBoolFlag() && !f.Hidden && !strings.Contains(f.Help, "(default: enabled)") {
			off = append(off, "--"+f.Name)
		}
	}
	app.Help += strings.Join(off, ", ") + "."
	return app, o
}

// parse reads the command line; the options are those before the error. Values are validated later, so
// that all errors are reported together.
func parse(args []string, text io.Writer) (*options, error) {
	app, o := newApplication(text)
	app.Terminate(func(int) { o.printed = true }) // called after printing only
	if _, err := app.Parse(args); err != nil && !o.printed {
		return o, fmt.Errorf("command line: %s; try --help", config.Line(repeatsArgument.ReplaceAllString(err.Error(), "$1 (argument not shown)")))
	}
	return o, nil
}

// repeatsArgument matches the messages of kingpin that repeat more than the name of a flag: it may be a
// secret.
var repeatsArgument = regexp.MustCompile(`(?s)^(unexpected|failed to (?:open|read) arguments|unknown long flag '\S+)\s.*`)

// unknownVariables returns a line for each variable of an environment that looks like one of ours and is none:
// if one is misspelt, a default is in force. Kubernetes makes some for a service of the exporter's name.
func (o *options) unknownVariables(environ []string) error {
	var errs []error
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, "SERVER_RENTAL_") && !strings.HasPrefix(name, "SERVER_RENTAL_EXPORTER_") && name != config.TokenEnvar && !slices.Contains(o.variables, name) {
			errs = append(errs, errors.New(config.Line(name)+": unknown variable, which has no effect"))
		}
	}
	return errors.Join(errs...)
}

// configure returns the configuration, or all errors in it and in the other flags.
func (o *options) configure() (*config.Config, error) {
	cfg, err := o.Load()
	if err == nil && o.Demo {
		configureDemo(cfg)
	}
	errs := []error{err, oneOf("--log.level", o.logLevel, logLevels()), oneOf("--log.format", o.logFormat, logFormats())}
	if err := web.CheckMetricsPath(o.telemetryPath); err != nil {
		errs = append(errs, fmt.Errorf("--web.telemetry-path: %w", err))
	}
	if cfg != nil && o.discovery && cfg.Collectors["servers"].Interval == 0 {
		errs = append(errs, errors.New("--web.enable-service-discovery: needs the collector servers, which must be enabled"))
	}
	return cfg, errors.Join(append(errs, o.checkServer()...)...)
}

// configureDemo sets the accounts and the watches of a demo in a configuration. Its base URL
// leads nowhere: requests do not leave the process.
func configureDemo(cfg *config.Config) {
	cfg.API.BaseURL = &url.URL{Scheme: "https", Host: "rental.example", Path: simulator.Prefix}
	tokens := demo.Accounts()
	for _, token := range slices.Sorted(maps.Keys(tokens)) {
		cfg.Accounts = append(cfg.Accounts, config.Account{Name: tokens[token], Token: promconfig.Secret(token)})
	}
	if len(cfg.Watches) == 0 {
		cfg.Watches = demo.Watches()
	}
}

// checkServer returns errors in the flags of the web server.
func (o *options) checkServer() []error {
	var errs []error
	if err := toolkit.Validate(*o.web.WebConfigFile); err != nil {
		for _, message := range config.YAMLErrors(err) {
			errs = append(errs, errors.New("--web.config.file: "+message))
		}
	}
	if *o.web.WebSystemdSocket {
		return errs // the addresses are not used
	}
	for _, address := range *o.web.WebListenAddresses {
		_, port, err := net.SplitHostPort(address)
		_, unknown := net.ResolveTCPAddr("tcp", ":"+port)
		if err != nil || unknown != nil { // a service name is valid
			errs = append(errs, errors.New("--web.listen-address: must be HOST:PORT, with a port of at most 65535"))
		}
	}
	return errs
}

func oneOf(flag, value string, values []string) error {
	if slices.Contains(values, value) {
		return nil
	}
	return fmt.Errorf("%s: must be one of %s", flag, strings.Join(values, ", "))
}
