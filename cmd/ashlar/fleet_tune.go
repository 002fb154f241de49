package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/ashlar-mem/ashlar/internal/answer/tune"
	"github.com/ashlar-mem/ashlar/internal/fleet"
	"github.com/ashlar-mem/ashlar/internal/fleet/answers"
	"github.com/ashlar-mem/ashlar/internal/present/text"
)

// fleetTuneOptions are the flags of fleet tune.
type fleetTuneOptions struct {
	store  storeFlags
	bounds whatifOptions // limit and device memory
	goal   wordFlag
	budget time.Duration
	json   bool
}

func newFleetTune(std stdio) *cobra.Command {
	var o fleetTuneOptions
	cmd := &cobra.Command{
		Use:   "tune FILE|HASH|RUN",
		Short: "Find settings for a file or for all ranks of a run, with all workers",
		Long: `Tune is the search of ashlar tune, with its batches of settings spread over all
workers of the fleet. Of a file, given by its path, by the name under which it was
added or the end of that, or by the beginning of its hash, it gives the answer of
ashlar tune; a file that is not in the fleet is added. Of a run
it gives the settings whose worst rank needs least: what serves any rank of the last
launch well is tried on each. --budget is for each search. Without workers the search
is made here.

Exit status: 0 answered; 2 the file or a flag is wrong, the store cannot be used, or
the command was interrupted.`,
		Example: "  ashlar fleet tune oom.pickle --limit 40GiB\n  ashlar fleet tune llama-7b --budget 2m",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("tune needs a FILE, the HASH of one, or a RUN")
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Var(&o.bounds.limit, "limit", "cap on reserved memory, or none; by default that of the recording")
	flags.Var(&o.bounds.memory, "device-memory", "device memory for the allocator, or none for unlimited; by default as the recording shows")
	for _, g := range tune.Goals {
		o.goal.words = append(o.goal.words, string(g))
	}
	flags.Var(&o.goal, "goal", "what counts: reserved, limit or calls; by default limit under a limit, else reserved")
	flags.DurationVar(&o.budget, "budget", time.Minute, "cut the search off after this time")
	o.store.addServer(cmd)
	addJSONFlag(cmd, &o.json)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if o.budget <= 0 {
			return fmt.Errorf("--budget is %v: give a time such as 10s", o.budget)
		}
		quietPipe()
		if _, err := os.Stat(args[0]); err != nil { // nothing is added, so nothing is made
			if err := o.store.exists(); err != nil {
				return err
			}
		}
		return o.store.fleet(cmd.Context(), func(st *fleet.Store) error { return o.run(cmd.Context(), std, st, args[0]) })
	}
	return cmd
}

func (o *fleetTuneOptions) run(ctx context.Context, std stdio, st *fleet.Store, arg string) error {
	defer saveMemory()()
	hash := ""
	if _, err := os.Stat(arg); err == nil {
		if hash, err = st.AddOne(ctx, arg); err != nil {
			return failure{err}
		}
	}
	x, err := fleet.NewIndex(ctx, st)
	if err != nil {
		return failure{err}
	}
	isRun := slices.ContainsFunc(x.Entries(), func(e answers.Entry) bool { return e.Run == arg })
	if hash == "" && !isRun {
		if hash, err = x.FindOne(arg); err != nil {
			return failure{err}
		}
		if hash == "" {
			return failure{fmt.Errorf("%s is no file here, and no file or run of the fleet: ashlar fleet query --show run,file,hash lists them; of a hash give at least %d digits", arg, fleet.LeastHash)}
		}
	}
	p := startProgress(std, 0, "settings evaluated")
	defer p.stop()
	t := &fleet.Tuner{Index: x, Question: tune.Question{
		Goal: tune.Goal(o.goal.value), Limit: o.bounds.limit.bytes, DeviceMemory: o.bounds.memory.bytes, Budget: o.budget,
		Progress: func(n int) { p.update(n, 0) },
	}}
	if hash == "" {
		d, err := answers.Tune(ctx, x.Entries(), arg, t)
		p.stop()
		if err != nil {
			return failed(ctx, err)
		}
		return printAnswer(std, o.json, d, func(w io.Writer) error { return text.FleetTune(w, d, std.style()) })
	}
	f, err := t.Load(ctx, hash)
	if err != nil {
		return failed(ctx, err)
	}
	d, err := t.Document(ctx, hash)
	p.stop()
	if d == nil {
		return failed(ctx, err)
	}
	return printTune(std, o.json, f, d)
}
