package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/ashlar-mem/ashlar/internal/fleet"
	"github.com/ashlar-mem/ashlar/internal/present/text"
)

func newFleetRedo(std stdio) *cobra.Command {
	var (
		store  storeFlags
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "redo",
		Short: "Analyse files again whose answers are of an earlier version, or that failed",
		Long: `Redo puts files into the queue that this version of ashlar has not analysed: those
with answers of an earlier version, those without any or with damaged ones, and those
that failed or were set aside. Questions whose answers did not change from one version to the next are
not asked again.

Exit status: 0 done; 2 the store cannot be used.`,
		Example: "  ashlar fleet redo",
		Args:    noWatchArguments,
	}
	store.addServer(cmd)
	addJSONFlag(cmd, &asJSON)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return store.known(cmd.Context(), func(st *fleet.Store) error {
			n, err := st.Redo(cmd.Context())
			if err != nil {
				return failure{err}
			}
			return printAnswer(std, asJSON, fleet.Requeued{Queued: n}, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s analysed again when workers run\n", text.Plural(n, "file is", "files are"))
				return err
			})
		})
	}
	return cmd
}

func newFleetCheck(std stdio) *cobra.Command {
	var (
		store  storeFlags
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Hash every part of every file again, and look for missing answers",
		Long: `Check reads all that the fleet has stored: every part of every file is hashed
again, every answer is read, and every file has to have its answers. What waits for a
worker is counted, and is not wrong.

Exit status: 0 all is well; 1 something is wrong, or a file has no answers yet; 2 the
store cannot be used.`,
		Example: "  ashlar fleet check --json",
		Args:    noWatchArguments,
	}
	store.addServer(cmd)
	addJSONFlag(cmd, &asJSON)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		quietPipe()
		return store.known(cmd.Context(), func(st *fleet.Store) error {
			stop := showSeconds(std, "s: reading all files of the fleet")
			c, err := st.Check(cmd.Context())
			stop()
			if err != nil {
				return failure{err}
			}
			err = printAnswer(std, asJSON, c, func(w io.Writer) error { return text.FleetChecked(w, c, std.style()) })
			if err == nil && len(c.Wrong)+c.Waiting+c.Damaged > 0 {
				err = status(exitBad)
			}
			return err
		})
	}
	return cmd
}

func newFleetRemove(std stdio) *cobra.Command {
	var (
		store  storeFlags
		run    string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "rm [HASH...]",
		Short: "Remove files and their answers",
		Long: `Rm removes files, named by the beginning of their hash or by their run, and all
answers about them. A file that was added with --by-path stays where it is.

Exit status: 0 removed; 2 there is no such file or run, and nothing was removed, or
the store cannot be used.`,
		Example: "  ashlar fleet rm 3f0c2a91\n  ashlar fleet rm --run llama-7b",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 && run == "" {
				return errors.New("rm needs the HASH of a file, or --run")
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&run, "run", "", "all files of the run `NAME`")
	store.addServer(cmd)
	addJSONFlag(cmd, &asJSON)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return store.known(cmd.Context(), func(st *fleet.Store) error {
			removed, err := removeFiles(cmd.Context(), st, args, run)
			if err != nil {
				return failure{err}
			}
			return printAnswer(std, asJSON, removed, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s removed\n", text.Plural(len(removed.Removed), "file", "files"))
				return err
			})
		})
	}
	return cmd
}

func removeFiles(ctx context.Context, st *fleet.Store, names []string, run string) (fleet.Removed, error) {
	x, err := fleet.NewIndex(ctx, st)
	if err != nil {
		return fleet.Removed{}, err
	}
	hashes, err := x.Find(names, run)
	if err != nil {
		return fleet.Removed{}, err
	}
	for _, hash := range hashes {
		if err := st.Remove(ctx, hash); err != nil {
			return fleet.Removed{}, err
		}
	}
	return fleet.Removed{Removed: hashes}, nil
}
