package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/ashlar-mem/ashlar/internal/fleet"
	"github.com/ashlar-mem/ashlar/internal/fleet/answers"
	"github.com/ashlar-mem/ashlar/internal/hub"
	"github.com/ashlar-mem/ashlar/internal/view"
	pages "github.com/ashlar-mem/ashlar/internal/view/fleet"
)

// workFlags are those of commands that analyse files.
type workFlags struct {
	jobs      int
	maxMemory sizeFlag
	maxTime   time.Duration
}

func (o *workFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVarP(&o.jobs, "jobs", "j", runtime.NumCPU(), "files analysed at once, each by a process")
	flags.Lookup("jobs").DefValue = "all cores"
	flags.Var(&o.maxMemory, "max-memory", "most memory of one such process; by default unlimited")
	flags.DurationVar(&o.maxTime, "max-time", 15*time.Minute, "most time for one file")
}

func (o *workFlags) options(std stdio) (fleet.WorkOptions, error) {
	if o.jobs < 0 || o.jobs > 1024 {
		return fleet.WorkOptions{}, errors.New("-j is a number of processes: give 0 to 1024")
	}
	if o.maxTime <= 0 {
		return fleet.WorkOptions{}, errors.New("--max-time is not positive: give a time such as 15m")
	}
	program, err := os.Executable()
	if err != nil {
		return fleet.WorkOptions{}, failure{err}
	}
	w := fleet.WorkOptions{
		Jobs: o.jobs, MaxTime: o.maxTime, Command: []string{program, "fleet", childCommand},
		Log: func(text string) { std.errorf("%s", text) },
	}
	if o.maxMemory.value != nil {
		w.MaxMemory = *o.maxMemory.value
	}
	return w, nil
}

// fleetServeFlags are those of serve.
type fleetServeFlags struct {
	store     storeFlags
	work      workFlags
	keep      daysFlag
	maxDisk   sizeFlag
	listen    string
	cert, key string
	tokenFile string
	page      bool
	view      viewOptions
}

func newFleetServe(std stdio) *cobra.Command {
	var o fleetServeFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the fleet to other commands, and analyse its files",
		Long: `Serve owns the folder of the fleet: other commands reach it over a socket that only
its user can open. It has the columns of all files in memory and answers questions
from there, and it analyses files with -j processes. If another process owns the
folder already, such as ashlar watch, serve works beside that one.

No port is opened unless --listen is given; then workers on other machines reach the
fleet with ashlar fleet work --hub. Beyond this machine that needs --cert, --key and
--token-file.

Exit status: 0 ended as it was asked to; 2 a flag is wrong, or the store or the
address cannot be used.`,
		Example: "  ashlar fleet serve\n" +
			"  ashlar fleet serve -j 0 --listen 10.0.0.7:4222 --cert cert.pem --key key.pem --token-file token",
		Args: noWatchArguments,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	o.store.add(cmd)
	o.work.add(cmd)
	flags.Var(&o.keep, "keep", "remove files that were added longer ago; by default none")
	flags.Var(&o.maxDisk, "max-disk", "remove the oldest files when the fleet takes more; by default none")
	flags.StringVar(&o.listen, "listen", "", "let workers of other machines in at this `ADDRESS`, HOST:PORT")
	flags.StringVar(&o.cert, "cert", "", "`FILE` with the certificate of --listen, PEM")
	flags.StringVar(&o.key, "key", "", "`FILE` with its key")
	flags.StringVar(&o.tokenFile, "token-file", "", "`FILE` with the token that they must send")
	flags.BoolVar(&o.page, "page", false, "serve the page on a port of this machine, and print its address")
	flags.IntVar(&o.view.port, "port", 0, "the page's port; by default a free one")
	flags.StringVar(&o.view.at, "at", fleetPlace, "the `PLACE` of the page to open, as its button Link copies it")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return o.run(cmd, std) }
	return cmd
}

// options returns how other machines reach the fleet.
func (o *fleetServeFlags) options() (options hub.Options, err error) {
	if o.listen == "" {
		if o.cert != "" || o.key != "" || o.tokenFile != "" {
			err = errors.New("--cert, --key and --token-file are for --listen: give it, too")
		}
		return options, err
	}
	if o.store.hub != "" {
		return options, errors.New("--listen is for a folder: leave --hub out")
	}
	options.Listen = &hub.Listen{Address: o.listen, Cert: o.cert, Key: o.key}
	if o.tokenFile != "" {
		if options.Listen.Token, err = readToken(o.tokenFile); err != nil {
			return options, failure{fmt.Errorf("--token-file: %w", err)}
		}
	}
	if err := options.Listen.Check(); err != nil {
		return options, fmt.Errorf("--listen: %w", err)
	}
	return options, nil
}

func (o *fleetServeFlags) run(cmd *cobra.Command, std stdio) error {
	work, err := o.work.options(std)
	if err != nil {
		return err
	}
	options, err := o.options()
	if err != nil {
		return err
	}
	if (o.view.port != 0 || o.view.at != fleetPlace) && !o.page {
		return errors.New("--port and --at are for --page: give it, too")
	}
	if err := o.view.check(); err != nil {
		return err
	}
	keep := fleet.Retention{Keep: time.Duration(o.keep)}
	if o.maxDisk.value != nil {
		if keep.MaxDisk = *o.maxDisk.value; keep.MaxDisk == 0 {
			return errors.New("--max-disk 0 would remove every file: give a size such as 200GiB, or leave it out for no limit")
		}
	}
	endless(cmd.Context())
	takesTime(cmd.Context()) // until the store is closed
	defer saveMemory()()     // a table of all files is soon garbage
	return untilEnded(cmd.Context(), o.store.fleetWith(cmd.Context(), options, func(h *hub.Hub, st *fleet.Store) error {
		if address := h.Address(); address != "" {
			std.errorf("workers reach it with --hub %s", address)
		}
		ctx, cancel := context.WithCancelCause(cmd.Context())
		defer cancel(nil)
		ready := func(x *fleet.Index) error {
			if !o.page {
				return nil
			}
			return o.servePage(ctx, std, x, cancel)
		}
		err := st.Serve(ctx, work, keep, ready)
		if cause := context.Cause(ctx); err == nil && cause != nil && !errors.Is(cause, context.Canceled) {
			err = cause
		}
		if err != nil {
			return failure{err}
		}
		return nil
	}))
}

// servePage serves the page until the context ends; what fails later ends serve.
func (o *fleetServeFlags) servePage(ctx context.Context, std stdio, x *fleet.Index, failed func(error)) error {
	token, err := o.view.token()
	if err != nil {
		return err
	}
	files := pages.Files{Entries: func(ctx context.Context) ([]answers.Entry, error) {
		err := x.Refresh(ctx)
		return x.Entries(), err
	}}
	page, err := view.New(view.Options{Port: o.view.port, Token: token, Log: func(text string) { std.errorf("%s", text) }, Fleet: files})
	if err != nil {
		return err
	}
	go func() {
		if err := page.Serve(ctx); err != nil {
			failed(err)
		}
	}()
	o.view.noOpen = true
	return o.view.announce(std, std.out, page)
}

// fleetPlace is the screen of the fleet.
const fleetPlace = "#//fleet"

func newFleetWork(std stdio) *cobra.Command {
	var (
		store storeFlags
		work  workFlags
	)
	cmd := &cobra.Command{
		Use:   "work",
		Short: "Analyse files of a fleet that another process serves",
		Long: `Work takes files from the queue of a fleet and analyses them with -j processes,
until it is ended. It may be ended or killed at any time: what it was at goes to
another worker. A file that kills its process three times, or takes longer than
--max-time or more than --max-memory, is set aside.

Exit status: 0 ended as it was asked to; 2 a flag is wrong, the store cannot be
used, or jobs come from a newer version.`,
		Example: "  ashlar fleet work --hub tls://10.0.0.7:4222 --ca cert.pem --token-file token -j 8\n" +
			"  ashlar fleet work --max-memory 8GiB",
		Args: noWatchArguments,
	}
	store.addServer(cmd)
	work.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		w, err := work.options(std)
		if err != nil {
			return err
		}
		if w.Jobs == 0 {
			return errors.New("-j 0 does nothing: give a number of processes")
		}
		if err := store.exists(); err != nil {
			return err
		}
		endless(cmd.Context())
		takesTime(cmd.Context())
		return untilEnded(cmd.Context(), store.fleetWith(cmd.Context(), hub.Options{Follow: true}, func(_ *hub.Hub, st *fleet.Store) error {
			if err := st.Work(cmd.Context(), w); err != nil {
				return failure{err}
			}
			return nil
		}))
	}
	return cmd
}

// childCommand is how serve and work call themselves for one file after the other.
const childCommand = "analyse"

func newFleetChild(std stdio) *cobra.Command {
	return &cobra.Command{
		Use:    childCommand,
		Hidden: true,
		Args:   noWatchArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			defer saveMemory()()
			if err := fleet.RunChild(cmd.Context(), std.in, std.out); err != nil {
				return failure{err}
			}
			return nil
		},
	}
}
