package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/ashlar-mem/ashlar/internal/fleet"
	"github.com/ashlar-mem/ashlar/internal/hub"
	"github.com/ashlar-mem/ashlar/internal/present/text"
)

func newFleet(std stdio) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fleet",
		Short: "Analyse the snapshots of many ranks, runs and commits",
		Long: `Fleet keeps snapshots, dumps and messages of many ranks, runs and commits, has
workers analyse each of them once, and answers questions over all of them: which
rank is odd, which commit grew, how many causes the failures have.

Everything is in a folder, which one process serves to the others; ashlar watch
has its history there, too, and the snapshots of its alarms are in the fleet. With
--hub it is in a NATS cluster. docs/fleet.md has the columns, the figures and
examples for systemd, Slurm and Kubernetes.`,
		Example: "  ashlar fleet add snapshots/ --run llama-7b --commit 1f0c2ab\n" +
			"  ashlar fleet serve\n" +
			"  ashlar fleet growth llama-7b\n" +
			"  ashlar fleet causes --since 7d",
		Args: cobra.ArbitraryArgs,
		RunE: noCommand,
	}
	cmd.AddCommand(newFleetAdd(std), newFleetServe(std), newFleetWork(std), newFleetChild(std))
	cmd.AddCommand(newFleetStatus(std), newFleetQuery(std), newFleetRanks(std), newFleetGrowth(std), newFleetCauses(std), newFleetTune(std))
	cmd.AddCommand(newFleetRedo(std), newFleetCheck(std), newFleetRemove(std))
	return cmd
}

func addJSONFlag(cmd *cobra.Command, asJSON *bool) {
	cmd.Flags().BoolVar(asJSON, "json", false, "print one JSON document")
}

// known opens a fleet that is there, for those who only ask: a folder with a wrong
// name is not made.
func (o *storeFlags) known(ctx context.Context, f func(*fleet.Store) error) error {
	if err := o.exists(); err != nil {
		return err
	}
	return o.fleet(ctx, f)
}

// exists says if there is no fleet.
func (o *storeFlags) exists() error {
	if err := o.check(); err != nil || o.hub != "" {
		return err
	}
	dir, err := o.folder()
	if err != nil {
		return failure{err}
	}
	if _, err := os.Stat(dir); err == nil && !hub.Exists(dir) || errors.Is(err, os.ErrNotExist) {
		return failure{fmt.Errorf("there is no fleet in %s: check --dir, or make one with ashlar fleet add", dir)}
	}
	return nil
}

// fleet opens the fleet, and makes it if it is not there.
func (o *storeFlags) fleet(ctx context.Context, f func(*fleet.Store) error) error {
	return o.fleetWith(ctx, hub.Options{}, func(_ *hub.Hub, st *fleet.Store) error { return f(st) })
}

// fleetWith is fleet for those who need more of the hub.
func (o *storeFlags) fleetWith(ctx context.Context, options hub.Options, f func(*hub.Hub, *fleet.Store) error) error {
	if err := o.check(); err != nil {
		return err
	}
	h, err := o.open(ctx, options)
	if err != nil {
		return failure{err}
	}
	defer h.Close()
	st, err := fleet.Open(ctx, h)
	if err != nil {
		return failure{err}
	}
	return f(h, st)
}

// addFailure words why files were not added, of which some are there.
func addFailure(ctx context.Context, err error, there, all int) string {
	if errors.Is(err, context.Canceled) {
		return fmt.Sprintf("%s: %s of %s files are in the fleet; run it again for the others", interruptedBy(ctx), count(there), count(all))
	}
	return oneLine(err)
}

// tagsFlag is KEY=VALUE, any number of times.
type tagsFlag map[string]string

func (f *tagsFlag) Set(s string) error {
	key, value, err := fleet.ParseTag(s)
	if err != nil {
		return err
	}
	if *f == nil {
		*f = tagsFlag{}
	}
	(*f)[key] = value
	return nil
}

func (f *tagsFlag) Type() string   { return "KEY=VALUE" }
func (f *tagsFlag) String() string { return "" }

func newFleetAdd(std stdio) *cobra.Command {
	var (
		store  storeFlags
		o      fleet.AddOptions
		tags   tagsFlag
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "add FILE|DIR|GLOB...",
		Short: "Add snapshots, dumps or messages to the fleet",
		Long: `Add takes snapshots, dumps of memory_stats() and out-of-memory messages into the
fleet, where workers analyse them. A file is known by its SHA-256: adding it twice
is adding it once. What the recorder wrote into a file (run, attempt, rank, world,
commit, tags) is known; flags win over it.

Of a folder everything below it is taken. What is left out is named: files that are
none of these, tables of results (.jsonl, .ndjson, .csv, .tsv), names that begin with
a dot, links to other folders. A file that was named and is none of these is refused;
one that is damaged is taken, and ashlar fleet status says so. A file that is known
keeps its run, commit and tags; if it has moved, or its bytes in the store are
damaged, they are taken anew.

Exit status: 0 all files are in the fleet; 2 one was refused, a flag is wrong, or
the store cannot be used. What was added before that stays, and is counted.`,
		Example: "  ashlar fleet add snapshots/ --run llama-7b --commit $(git rev-parse HEAD)\n" +
			"  ashlar fleet add --by-path /shared/run7/*.pickle --tag cluster=a",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("add needs a FILE")
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.Run, "run", "", "`NAME` of the run")
	flags.StringVar(&o.Commit, "commit", "", "`SHA` of the code")
	flags.Var(&tags, "tag", "a tag; may be given several times")
	flags.BoolVar(&o.ByPath, "by-path", false, "copy nothing: workers read the files where they are, on shared storage")
	store.addServer(cmd)
	addJSONFlag(cmd, &asJSON)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.Tags = tags
		files, skipped, refused, err := fleet.Below(args)
		if err != nil {
			return failure{err}
		}
		quietPipe()
		return store.fleet(cmd.Context(), func(st *fleet.Store) error {
			p := startProgress(std, len(files), "files added")
			added, err := st.Add(cmd.Context(), files, o, func(done int) { p.update(done, len(files)) })
			p.stop()
			added.Skipped, added.Refused = append(added.Skipped, skipped...), append(added.Refused, refused...)
			// What was added before an error stays, so it is said.
			if err != nil {
				added.Error = addFailure(cmd.Context(), err, added.Added+added.Known, len(files))
			}
			said := printAnswer(std, asJSON, added, func(w io.Writer) error { return text.FleetAdded(w, &added, std.style()) })
			for _, r := range added.Refused {
				std.errorf("%s", r.Error)
			}
			switch {
			case said != nil:
				return said
			case err != nil:
				std.errorf("%s", added.Error)
				return status(exitInput)
			case len(added.Refused) > 0:
				return status(exitInput)
			}
			return nil
		})
	}
	return cmd
}
