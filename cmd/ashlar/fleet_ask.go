package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/ashlar-mem/ashlar/internal/fleet"
	"github.com/ashlar-mem/ashlar/internal/present/text"
)

// askFleet puts a question to the fleet and prints the answer.
func askFleet[T any](ctx context.Context, std stdio, store *storeFlags, asJSON bool, q fleet.Question, show func(io.Writer, *T, text.Style) error) error {
	quietPipe()
	return store.fleet(ctx, func(st *fleet.Store) error {
		document, err := st.Ask(ctx, q)
		if err != nil {
			return failure{err}
		}
		return printAnswer(std, asJSON, document, func(w io.Writer) error {
			a := new(T)
			if err := json.Unmarshal(document, a); err != nil {
				return err
			}
			return show(w, a, std.style())
		})
	})
}

func newFleetStatus(std stdio) *cobra.Command {
	var (
		store  storeFlags
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the queue, the workers and the disk of the fleet, and what could not be analysed",
		Args:  noWatchArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return askFleet(cmd.Context(), std, &store, asJSON, fleet.Question{Status: &fleet.StatusQuestion{}}, text.FleetStatus)
		},
	}
	store.addServer(cmd)
	addJSONFlag(cmd, &asJSON)
	return cmd
}

func newFleetRanks(std stdio) *cobra.Command {
	var (
		store  storeFlags
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "ranks RUN",
		Short: "Find the odd ranks of a run",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("ranks needs the name of a RUN: ashlar fleet query --group-by run lists them")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return askFleet(cmd.Context(), std, &store, asJSON, fleet.Question{Ranks: &fleet.RanksQuestion{Run: args[0]}}, text.FleetRanks)
		},
	}
	store.addServer(cmd)
	addJSONFlag(cmd, &asJSON)
	return cmd
}

func newFleetGrowth(std stdio) *cobra.Command {
	var (
		store  storeFlags
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "growth [RUN]",
		Short: "Find the commits at which the memory of a run grew",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			q := &fleet.GrowthQuestion{}
			if len(args) > 0 {
				q.Run = args[0]
			}
			return askFleet(cmd.Context(), std, &store, asJSON, fleet.Question{Growth: q}, text.FleetGrowth)
		},
	}
	store.addServer(cmd)
	addJSONFlag(cmd, &asJSON)
	return cmd
}

func newFleetCauses(std stdio) *cobra.Command {
	var (
		store  storeFlags
		since  daysFlag
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "causes",
		Short: "Group the failures of the fleet by cause",
		Args:  noWatchArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			q := &fleet.CausesQuestion{}
			if since > 0 {
				q.SinceUS = time.Now().Add(-time.Duration(since)).UnixMicro()
			}
			return askFleet(cmd.Context(), std, &store, asJSON, fleet.Question{Causes: q}, text.FleetCauses)
		},
	}
	cmd.Flags().Var(&since, "since", "only failures of the last `TIME`, such as 7d or 12h")
	store.addServer(cmd)
	addJSONFlag(cmd, &asJSON)
	return cmd
}
