package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/ashlar-mem/ashlar/internal/fleet"
	"github.com/ashlar-mem/ashlar/internal/fleet/answers"
	"github.com/ashlar-mem/ashlar/internal/present/text"
)

func newFleetQuery(std stdio) *cobra.Command {
	var (
		store  storeFlags
		o      answers.QueryOptions
		out    string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "query",
		Short: "Show a table of files, or of groups of them",
		Long: `Query shows the files of the fleet that an expression chooses, as a table.

  --where 'run =~ "llama.*" and peak_reserved_bytes > 60GiB'
  --where 'failed and age < 7d and tag.cluster = a'

A column is compared by = != < <= > >= with a number, a size, a time or a text, and
by =~ and !~ with a regular expression; and, or, not and parentheses combine. With
--group-by there is a row for each value of a column, and --show takes count and
min, max, sum, avg, median and distinct of a column. docs/fleet.md has the columns.

Exit status: 0 answered; 2 a flag is wrong, or the store cannot be used.`,
		Example: "  ashlar fleet query --where 'failed' --show run,rank,cause,line\n" +
			"  ashlar fleet query --group-by run,commit --show 'run,commit,count,max(peak_reserved_bytes)'\n" +
			"  ashlar fleet query -o fleet.parquet",
		Args: noWatchArguments,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.Where, "where", "", "only files for which the expression `EXPR` holds")
	flags.StringVar(&o.GroupBy, "group-by", "", "a row for each value of these `COLUMNS`, with commas between them")
	flags.StringVar(&o.Show, "show", "", "`COLUMNS` of the table, or all")
	flags.StringVar(&o.Sort, "sort", "", "sort by these `COLUMNS`; -NAME: the largest first")
	flags.IntVar(&o.Limit, "limit", 0, "at most `N` rows; 0: all")
	flags.StringVarP(&out, "output", "o", "", "write the table to a `FILE` that ends in .parquet")
	store.addServer(cmd)
	addJSONFlag(cmd, &asJSON)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		o.NowUS = time.Now().UnixMicro()
		if out != "" && o.Show == "" && o.GroupBy == "" {
			o.Show = answers.AllColumns
		}
		if _, err := answers.NewQuery(o); err != nil {
			return failure{err}
		}
		if out == "" {
			return askFleet(cmd.Context(), std, &store, asJSON, fleet.Question{Query: &o}, text.FleetQuery)
		}
		if filepath.Ext(out) != ".parquet" {
			return fmt.Errorf("-o %s: the table is Parquet; let the name end in .parquet", out)
		}
		return store.known(cmd.Context(), func(st *fleet.Store) error {
			document, err := st.Ask(cmd.Context(), fleet.Question{Table: &o})
			if err != nil {
				return failure{err}
			}
			var d fleet.TableFile
			if err := json.Unmarshal(document, &d); err != nil {
				return failure{err}
			}
			err = writeFile(cmd.Context(), out, func(w io.Writer) error {
				_, err := w.Write(d.Parquet)
				return err
			})
			if err != nil {
				return err
			}
			if !asJSON {
				for _, n := range d.Notes {
					std.errorf("note: %s", n)
				}
				return nil
			}
			return printAnswer(std, asJSON, fleet.WrittenTable{File: out, Rows: d.Rows, Columns: d.Columns, Notes: d.Notes}, nil)
		})
	}
	return cmd
}

// askFleet puts a question to the fleet and prints the answer.
func askFleet[T any](ctx context.Context, std stdio, store *storeFlags, asJSON bool, q fleet.Question, show func(io.Writer, *T, text.Style) error) error {
	quietPipe()
	return store.known(ctx, func(st *fleet.Store) error {
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
		Short: "Show the queue, the workers and the disk of the fleet",
		Long: `Status shows how many files the fleet has and how many are analysed, the queue, who
works, how much is stored, and every file that could not be analysed, with its reason.

Exit status: 0 answered; 2 the store cannot be used.`,
		Example: "  ashlar fleet status --json",
		Args:    noWatchArguments,
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
		Long: `Ranks compares the ranks of each launch of a run as ashlar diff does: a rank is odd if
it is further from the median than 1 % of it and than three deviations.

Exit status: 0 answered, whatever was found; 2 there is no such run, or the store
cannot be used.`,
		Example: "  ashlar fleet ranks llama-7b",
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
		Long: `Growth shows the peaks of a run, or of all runs, by commit in the order of their first
appearance, each of the worst rank. It names the commits that grew beyond 1 % and
three deviations, and the call stacks that did.

Exit status: 0 answered, whatever was found; 2 there is no such run, or the store
cannot be used.`,
		Example: "  ashlar fleet growth llama-7b",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return errors.New("growth takes one RUN")
			}
			return nil
		},
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
		Long: `Causes groups the files in which a request for memory failed: by the verdict of ashlar
explain, your own line in the stack of the request, and the site of what was in its
way. Lines that moved from one commit to another are the same line. For each cause it
shows how many files, runs, ranks and commits have it, and the fix that passes in most.

Exit status: 0 answered, whatever was found; 2 a flag is wrong, or the store cannot
be used.`,
		Example: "  ashlar fleet causes --since 7d",
		Args:    noWatchArguments,
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
