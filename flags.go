package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/version"
	toolkit "github.com/prometheus/exporter-toolkit/web"
	"github.com/prometheus/exporter-toolkit/web/kingpinflag"

	"server_rental_exporter/config"
	"server_rental_exporter/internal/web"
)

// options are the flags.
type options struct {
	*config.Flags
	web           *toolkit.FlagConfig
	telemetryPath string
	lifecycle     bool
	discovery     bool
	once          bool
	logLevel      string
	logFormat     string
	unknown       []error // flags that there are not
}

// What --log.level and --log.format may be.
func logLevels() []string  { return []string{"debug", "info", "warn", "error"} }
func logFormats() []string { return []string{"logfmt", "json"} }

// parse reads the command line. What the flags' values are worth is load's business,
// so that every fault of theirs is told at once.
func parse(args []string) (*options, error) {
	app := kingpin.New(name, "Prometheus exporter for the Dedicated Server Rental API: plan stock and prices, component states, balances, top-ups and servers. Scrapes are answered from data that was fetched in the background, within the API's rate limits.")
	app.Version(version.Print(name))
	app.HelpFlag.Short('h')
	app.UsageWriter(os.Stdout)
	app.UsageFuncs(template.FuncMap{"FlagsToTwoColumns": flagRows})
	o := &options{Flags: config.AddFlags(app, specs())}
	app.Flag("once", "Fetch everything once, print the metrics and exit; status 1 where a collector failed. For cron and the textfile collector.").BoolVar(&o.once)
	o.web = kingpinflag.AddFlags(app, ":10170")
	app.Flag("web.telemetry-path", "Path under which the metrics are served.").Default("/metrics").StringVar(&o.telemetryPath)
	app.Flag("web.enable-lifecycle", "Allow POST /-/reload.").BoolVar(&o.lifecycle)
	app.Flag("web.enable-service-discovery", "Serve /sd/servers, which tells the servers' addresses.").BoolVar(&o.discovery)
	app.Flag("log.level", "Only log messages of this severity or above: "+strings.Join(logLevels(), ", ")+".").Default("info").StringVar(&o.logLevel)
	app.Flag("log.format", "Format of log messages: "+strings.Join(logFormats(), ", ")+".").Default("logfmt").StringVar(&o.logFormat)
	args, o.unknown = sift(app, args)
	if _, err := app.Parse(args); err != nil {
		return nil, errors.Join(append(o.unknown, fmt.Errorf("command line: %w; try --help", err))...)
	}
	return o, nil
}

// sift takes out the flags that there are not: kingpin would tell of the first only.
func sift(app *kingpin.Application, args []string) (known []string, unknown []error) {
	for i, arg := range args {
		if arg == "--" {
			return append(known, args[i:]...), unknown
		}
		flag, _, _ := strings.Cut(arg, "=") // what follows may be a secret
		name, long := strings.CutPrefix(flag, "--")
		if long && app.GetFlag(name) == nil && app.GetFlag(strings.TrimPrefix(name, "no-")) == nil {
			unknown = append(unknown, fmt.Errorf("%s: unknown flag; try --help", flag))
			continue
		}
		known = append(known, arg)
	}
	return known, unknown
}

// flagRows lists the flags for --help. Kingpin writes [no-] before every switch;
// here only collectors are worth switching off.
func flagRows(flags []*kingpin.FlagModel) [][2]string {
	var rows [][2]string
	for _, f := range flags {
		if f.Hidden {
			continue
		}
		left := "    --" + f.Name
		switch {
		case f.Short != 0:
			left = fmt.Sprintf("-%c, --%s", f.Short, f.Name)
		case strings.HasPrefix(f.Name, "collector."):
			left = "    --[no-]" + f.Name
		case !f.IsBoolFlag():
			left += "=" + f.FormatPlaceHolder()
		}
		rows = append(rows, [2]string{left, f.HelpWithEnvar()})
	}
	return rows
}

// load returns the configuration, or every fault of it and of the other flags.
func (o *options) load(getenv func(string) string) (*config.Config, error) {
	cfg, err := o.Load(getenv)
	errs := slices.Concat(o.unknown, []error{
		err, oneOf("--log.level", o.logLevel, logLevels()), oneOf("--log.format", o.logFormat, logFormats()),
	})
	if err := web.CheckMetricsPath(o.telemetryPath); err != nil {
		errs = append(errs, fmt.Errorf("--web.telemetry-path: %w", err))
	}
	if err := toolkit.Validate(*o.web.WebConfigFile); err != nil {
		errs = append(errs, fmt.Errorf("--web.config.file: %w", err))
	}
	return cfg, errors.Join(append(errs, o.checkAddresses()...)...)
}

func oneOf(flag, value string, values []string) error {
	if slices.Contains(values, value) {
		return nil
	}
	return fmt.Errorf("%s: %q: must be one of %s", flag, value, strings.Join(values, ", "))
}

// checkAddresses finds addresses at which nothing can listen.
func (o *options) checkAddresses() []error {
	if *o.web.WebSystemdSocket {
		return nil // they are not used
	}
	var errs []error
	for _, address := range *o.web.WebListenAddresses {
		if strings.HasPrefix(address, "vsock://") {
			continue
		}
		_, port, err := net.SplitHostPort(address)
		if _, bad := strconv.ParseUint(port, 10, 16); errors.Is(bad, strconv.ErrRange) { // it may also be a service's name
			err = fmt.Errorf("address %s: the port must be at most 65535", address)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("--web.listen-address: %w", err))
		}
	}
	return errs
}

func printCost(w io.Writer, cfg *config.Config) {
	fmt.Fprintln(w, "The configuration is sound. It costs, in requests per minute:")
	for _, c := range cfg.RequestRates(specs()) {
		scope := "public"
		if c.Account != "" {
			scope = "account " + c.Account
		}
		fmt.Fprintf(w, "  %s: %.1f", scope, c.PerMinute)
		if c.MaxPerMinute > c.PerMinute {
			fmt.Fprintf(w, " (up to %.1f with a long history)", c.MaxPerMinute)
		}
		fmt.Fprintf(w, " of %d\n", c.Limit)
	}
}
