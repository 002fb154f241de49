package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/ashlar-mem/ashlar/internal/answer"
	"github.com/ashlar-mem/ashlar/internal/fleet"
	"github.com/ashlar-mem/ashlar/internal/guard"
	"github.com/ashlar-mem/ashlar/internal/hub"
	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/present/text"
	"github.com/ashlar-mem/ashlar/internal/view"
	"github.com/ashlar-mem/ashlar/internal/watch"
)

// watchOptions are the flags of watch.
type watchOptions struct {
	store       watchStore
	listen      string
	maxDisk     sizeFlag
	maxSnapshot sizeFlag
	alarms      string
	metrics     string
	cert, key   string // of metrics
	tokenFile   string
	forward     string
	page        watchPage
	noNVML      bool
	once        bool
	json        bool
}

// watchStore says where the history is.
type watchStore struct {
	storeFlags
	keep daysFlag
}

// daysFlag is a time, in which d stands for days.
type daysFlag time.Duration

func (f *daysFlag) Set(s string) error {
	if n, ok := strings.CutSuffix(s, "d"); ok {
		if days, err := strconv.Atoi(n); err == nil && days > 0 && days <= 3650 {
			*f = daysFlag(time.Duration(days) * 24 * time.Hour)
			return nil
		}
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < time.Hour {
		return errors.New("write a time of at least an hour, such as 7d or 12h")
	}
	*f = daysFlag(d)
	return nil
}

func (f *daysFlag) Type() string { return "TIME" }

func (f *daysFlag) String() string {
	if *f == 0 {
		return ""
	}
	if d := time.Duration(*f); d%(24*time.Hour) != 0 {
		return d.String()
	}
	return fmt.Sprintf("%dd", int(time.Duration(*f).Hours()/24))
}

const week = daysFlag(watch.DefaultKeep)

func newWatch(std stdio) *cobra.Command {
	o := watchOptions{store: watchStore{keep: week}, maxDisk: defaultSize("1GiB"), maxSnapshot: defaultSize("1GiB")}
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Watch running PyTorch jobs, and warn before they die",
		Long: `Watch shows the GPU memory of jobs that run: those that call ashlar.watch(), or
are started with python ashlar.py --watch train.py. It keeps their history, raises
alarms, and asks a job for the snapshot that explains one. Of other processes on this
machine's GPUs it shows what NVML knows: how much memory they hold.

It prints the address of a page with curves, alarms and their snapshots. On a
terminal a table follows, which is drawn anew every second; with --json it
prints a line of JSON for each sample and each alarm; with --once it prints the
state and ends. If another ashlar watch runs, --once asks that one.

The history has every sample for two hours, one of each 10 seconds for a day, with
the least and the most, and one of each minute for --keep. When it comes to
--max-disk, the oldest and finest goes first. It is in --dir, which one process
serves at a time; with --hub it is in a NATS cluster, and with --forward it is in
--dir first and is copied to a cluster whenever that can be reached.

--alarms names a file with an alarm on each line:

  NAME: EXPR >|< VALUE [clear VALUE] [for 30s|N steps] [per rank|run] -> ACTION
  frag: inactive_split/reserved > 0.3 clear 0.2 for 60s -> log, snapshot

Actions, with commas between them, are log, snapshot, empty_cache and run COMMAND. docs/watch.md has the
expressions, the default alarms, and the messages of the jobs.

Exit status: 0 ended as it was asked to; 2 a flag or a line of the alarms is wrong,
or the store or an address cannot be used.`,
		Example: "  ashlar watch\n" +
			"  ashlar watch --listen 127.0.0.1:9200 --alarms alarms.txt --metrics 127.0.0.1:9400\n" +
			"  ashlar watch --once --json\n" +
			"  ashlar watch export RUN -o run.parquet",
		Args: noWatchArguments,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.listen, "listen", "unix:"+defaultSocket(), "where jobs reach it, `ADDRESS`: unix:PATH or 127.0.0.1:PORT")
	flags.Lookup("listen").DefValue = "unix:$XDG_RUNTIME_DIR/ashlar/watch.sock"
	o.store.add(cmd)
	flags.Var(&o.store.keep, "keep", "how long the history stays")
	flags.Var(&o.maxDisk, "max-disk", "most bytes of the history")
	flags.Var(&o.maxSnapshot, "max-snapshot", "most bytes of a snapshot that a job sends")
	flags.StringVar(&o.alarms, "alarms", "", "`FILE` with alarms, in place of the default ones")
	flags.StringVar(&o.metrics, "metrics", "", "serve /metrics for Prometheus at this `ADDRESS`, 127.0.0.1:PORT; any other with the next three flags")
	flags.StringVar(&o.cert, "metrics-cert", "", "`FILE` with the certificate of --metrics, PEM")
	flags.StringVar(&o.key, "metrics-key", "", "`FILE` with its key")
	flags.StringVar(&o.tokenFile, "metrics-token-file", "", "`FILE` with the bearer token that Prometheus must send")
	flags.StringVar(&o.forward, "forward", "", "copy the history to a NATS cluster, `URL`")
	flags.BoolVar(&o.noNVML, "no-nvml", false, "leave out the processes on this machine's GPUs that do not call ashlar.watch()")
	o.page.add(cmd)
	flags.BoolVar(&o.once, "once", false, "print the state and end")
	flags.BoolVar(&o.json, "json", false, "print JSON: a line for each sample and alarm, or with --once one document")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		rules, err := o.check()
		if err != nil {
			return err
		}
		quietPipe()
		if o.once {
			return o.runOnce(cmd.Context(), std, rules)
		}
		endless(cmd.Context())
		return untilEnded(cmd.Context(), o.run(cmd.Context(), std, rules))
	}
	cmd.AddCommand(newWatchExport(std), newWatchSnapshot(std))
	return cmd
}

func noWatchArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return noCommand(cmd, args)
	}
	return nil
}

// defaultSocket is where ashlar.py looks, too.
func defaultSocket() string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return filepath.Join(dir, "ashlar", "watch.sock")
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("ashlar-%d", os.Getuid()), "watch.sock")
}

// maxAlarms is far above any list of alarms.
const maxAlarms = 1 // MiB

func (o *watchOptions) check() ([]*watch.Rule, error) {
	switch {
	case o.store.hub != "" && (o.store.dir != "" || o.forward != ""):
		return nil, errors.New("--hub keeps everything in the cluster: leave --dir and --forward out")
	case o.store.creds != "" && o.store.hub == "" && o.forward == "":
		return nil, errors.New("--creds is for --hub or --forward: give one of them")
	case o.secured() && (o.metrics == "" || o.cert == "" || o.key == "" || o.tokenFile == ""):
		return nil, errors.New("--metrics, --metrics-cert, --metrics-key and --metrics-token-file go together: give all of them")
	}
	if err := o.page.view.check(); err != nil {
		return nil, err
	}
	if o.alarms == "" {
		return watch.ParseRules(watch.DefaultRules)
	}
	if err := input.Check(o.alarms); err != nil {
		return nil, failure{fmt.Errorf("--alarms: %w", err)}
	}
	lines, err := guard.ReadFile(o.alarms, maxAlarms, "list of alarms")
	var refused *guard.RefusedError
	switch {
	case errors.As(err, &refused):
		return nil, failure{fmt.Errorf("--alarms: %w", err)}
	case err != nil:
		return nil, failure{fmt.Errorf("--alarms: %s cannot be read: %w", o.alarms, err)}
	}
	rules, err := watch.ParseRules(string(lines))
	if err != nil {
		return nil, failure{fmt.Errorf("%s: %w", o.alarms, err)}
	}
	return rules, nil
}

// options returns how jobs are watched.
func (o *watchOptions) options(rules []*watch.Rule, log func(string)) watch.Options {
	return watch.Options{
		Keep: time.Duration(o.store.keep), MaxDisk: *o.maxDisk.value, MaxSnapshot: int64(*o.maxSnapshot.value), Rules: rules, Log: log,
		Schema: answer.Schema,
	}
}

// runOnce asks the server that runs, or reads the store.
func (o *watchOptions) runOnce(ctx context.Context, std stdio, rules []*watch.Rule) error {
	st, err := askState(ctx, o.listen)
	if err != nil || o.store.hub != "" || o.store.dir != "" {
		if dir := o.store.dir; dir != "" {
			if info, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) || err == nil && info.IsDir() && !hub.Exists(dir) {
				return failure{fmt.Errorf("there is no store in %s: check --dir", dir)} // who only looks makes none
			}
		}
		h, err := o.store.open(ctx, hub.Options{})
		if err != nil {
			return failure{err}
		}
		defer h.Close()
		s, err := watch.NewServer(ctx, h, o.options(rules, func(text string) { std.errorf("%s", text) }))
		if err != nil {
			return failure{err}
		}
		s.Load(ctx, time.Duration(o.store.keep))
		st = s.Status()
	}
	return printAnswer(std, o.json, &st, func(w io.Writer) error { return text.Watch(w, &st, std.style()) })
}

// maxState is far above the state of any server.
const maxState = 64 << 20

// askState asks a server that runs for its state.
func askState(ctx context.Context, address string) (st watch.Status, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	network, target := "tcp", address
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		network, target = "unix", path
	}
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, target)
	}}}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/v1/state", nil)
	if err != nil {
		return st, err
	}
	answer, err := client.Do(request)
	if err != nil {
		return st, err
	}
	defer answer.Body.Close()
	return st, json.NewDecoder(io.LimitReader(answer.Body, maxState)).Decode(&st)
}

// run watches until it is asked to end.
func (o *watchOptions) run(ctx context.Context, std stdio, rules []*watch.Rule) error {
	token, err := o.token()
	if err != nil {
		return failure{err}
	}
	listeners, err := o.listeners()
	if err != nil {
		return failure{err}
	}
	defer func() {
		for _, l := range listeners {
			l.Close()
		}
	}()
	h, err := o.store.open(ctx, hub.Options{})
	if err != nil {
		return failure{err}
	}
	defer h.Close()
	if alone, err := h.Claim("watch"); err != nil || !alone {
		return failure{cmp.Or(err, errors.New("another ashlar watch serves this --dir: see it with --once, or choose another folder"))}
	}
	many, err := fleet.Open(ctx, h)
	if err != nil {
		return failure{err}
	}
	screen := &watchScreen{std: std, json: o.json}
	options := o.options(rules, screen.log)
	options.Stored = many.AddAlarm
	if o.json {
		options.Sampled = func(s watch.Sample) { screen.line(s) }
		options.Alarmed = func(a watch.Alarm) { screen.line(alarmLine{"alarm", a}) }
	}
	s, err := watch.NewServer(ctx, h, options)
	if err != nil {
		return failure{err}
	}
	std.errorf("jobs reach it at %s", addressOf(listeners[0]))
	out := std.out
	if o.json {
		out = std.err // standard output is for the lines
	}
	page, err := o.page.start(std, out, s)
	if err != nil {
		return failure{err}
	}
	return o.serve(ctx, s, screen, page, listeners, []http.Handler{s.Handler(), s.MetricsHandler(token)})
}

// addressOf is how --listen names where a listener is, whose port the system may have chosen.
func addressOf(l net.Listener) string {
	if a := l.Addr(); a.Network() != "unix" {
		return a.String()
	}
	return "unix:" + l.Addr().String()
}

// serve answers on the listeners, each with its handler, and on the page, and does
// what else is to be done meanwhile, until it is asked to end.
func (o *watchOptions) serve(ctx context.Context, s *watch.Server, screen *watchScreen, page *view.Server, listeners []net.Listener, handlers []http.Handler) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for i, l := range listeners {
		all.Go(func() {
			if err := watch.Serve(ctx, l, handlers[i]); err != nil {
				cancel(err)
			}
		})
	}
	all.Go(func() {
		if err := page.Serve(ctx); err != nil {
			cancel(err)
		}
	})
	all.Go(func() { s.Run(ctx) })
	if list := o.outsiders(); list != nil {
		host, _ := os.Hostname() // none is none
		all.Go(func() { s.WatchProcesses(ctx, host, list) })
	}
	if o.forward != "" {
		to := hub.Options{URL: o.forward, Creds: o.store.creds}
		all.Go(func() { s.Forward(ctx, func(ctx context.Context) (*hub.Hub, error) { return hub.Open(ctx, to) }) })
	}
	if err := screen.show(ctx, s); err != nil {
		cancel(err)
	}
	<-ctx.Done()
	all.Wait()
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return failure{err}
	}
	return nil
}

// secured reports whether the metrics may be seen from other machines.
func (o *watchOptions) secured() bool { return o.cert != "" || o.key != "" || o.tokenFile != "" }

// token reads what Prometheus must send; nothing if the metrics stay on this machine.
func (o *watchOptions) token() (string, error) {
	if !o.secured() {
		return "", nil
	}
	token, err := readToken(o.tokenFile)
	if err == nil {
		err = view.CheckToken(token)
	}
	if err != nil {
		return "", fmt.Errorf("--metrics-token-file: %w", err)
	}
	return token, nil
}

// listeners opens the address for the jobs and that for Prometheus.
func (o *watchOptions) listeners() (all []net.Listener, err error) {
	for flag, address := range []string{o.listen, o.metrics} {
		if address == "" {
			continue
		}
		open := watch.Listen
		if flag == 1 && o.secured() {
			open = func(address string) (net.Listener, error) { return watch.ListenTLS(address, o.cert, o.key) }
		}
		l, err := open(address)
		if err != nil {
			for _, l := range all {
				l.Close()
			}
			return nil, fmt.Errorf("%s: %w", []string{"--listen", "--metrics"}[flag], err)
		}
		all = append(all, l)
	}
	return all, nil
}
