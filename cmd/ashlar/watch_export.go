package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/ashlar-mem/ashlar/internal/hub"
	"github.com/ashlar-mem/ashlar/internal/present/table"
	"github.com/ashlar-mem/ashlar/internal/watch"
)

func newWatchExport(std stdio) *cobra.Command {
	var out string
	store := watchStore{keep: week}
	cmd := &cobra.Command{
		Use:   "export RUN -o FILE.parquet",
		Short: "Write the history of a run as a table",
		Long: `Export writes the history of a run, all its ranks and GPUs, as a Parquet table:
each row is a sample, or what is left of several. Columns with _min and _max have
the least and the most of those.`,
		Example: "  ashlar watch export train.py -o train.parquet",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("export needs the name of a RUN, as ashlar watch --once shows it")
			}
			return nil
		},
	}
	store.add(cmd)
	cmd.Flags().StringVarP(&out, "output", "o", "", "the table, a `FILE` that ends in .parquet")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if out == "" {
			return errors.New("export needs -o and the name of a file that ends in .parquet")
		}
		if filepath.Ext(out) != ".parquet" {
			return fmt.Errorf("-o %s: the table is Parquet; let the name end in .parquet", out)
		}
		return store.with(cmd.Context(), std, func(s *watch.Server) error {
			return writeFile(cmd.Context(), out, func(w io.Writer) error { return exportRun(cmd.Context(), w, s, args[0]) })
		})
	}
	return cmd
}

// with opens the store to read it.
func (o *watchStore) with(ctx context.Context, std stdio, f func(*watch.Server) error) error {
	h, err := o.open(ctx, hub.Options{})
	if err != nil {
		return failure{err}
	}
	defer h.Close()
	s, err := watch.NewServer(ctx, h, watch.Options{Keep: time.Duration(o.keep), Log: func(text string) { std.errorf("%s", text) }})
	if err != nil {
		return failure{err}
	}
	return f(s)
}

func exportRun(ctx context.Context, w io.Writer, s *watch.Server, run string) error {
	columns := []table.Column{
		{Name: "run", Text: true},
		{Name: "attempt"},
		{Name: "rank"},
		{Name: "host", Text: true},
		{Name: "pid"},
		{Name: "session", Text: true},
		{Name: "gpu"},
	}
	for _, name := range watch.Names {
		columns = append(columns, table.Column{Name: name})
	}
	for _, g := range watch.Gauges {
		columns = append(columns, table.Column{Name: watch.Names[g] + "_min"}, table.Column{Name: watch.Names[g] + "_max"})
	}
	out := table.NewParquet(w, columns)
	integer := func(n int64) table.Cell {
		if n < 0 {
			return table.Cell{} // not known
		}
		return table.Int(n)
	}
	err := s.History(ctx, run, func(h *watch.Hello, last, low, high watch.Row) error {
		cells := []table.Cell{
			table.Text(h.Run), table.Int(int64(h.Attempt)), table.Int(int64(h.Rank)), table.Text(h.Host), table.Int(int64(h.PID)),
			table.Text(h.Session), integer(int64(last.GPU)),
		}
		for _, v := range last.V {
			cells = append(cells, integer(v))
		}
		for _, g := range watch.Gauges {
			cells = append(cells, integer(low.V[g]), integer(high.V[g]))
		}
		out.Row(cells)
		return ctx.Err()
	})
	return errors.Join(err, out.Close())
}

func newWatchSnapshot(std stdio) *cobra.Command {
	var out string
	store := watchStore{keep: week}
	cmd := &cobra.Command{
		Use:   "snapshot NAME -o FILE.pickle",
		Short: "Write the snapshot of an alarm as a file",
		Long: `Snapshot writes a snapshot that a job sent because of an alarm. The alarm has its
NAME: see ashlar watch --once. Every command of ashlar reads the file.`,
		Example: "  ashlar watch snapshot NAME -o oom.pickle\n  ashlar explain oom.pickle",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("snapshot needs the NAME that an alarm has, as ashlar watch --once shows it")
			}
			return nil
		},
	}
	store.add(cmd)
	cmd.Flags().StringVarP(&out, "output", "o", "", "the snapshot, a `FILE`")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if out == "" {
			return errors.New("snapshot needs -o and the name of a file")
		}
		return store.with(cmd.Context(), std, func(s *watch.Server) error {
			r, err := s.Snapshot(cmd.Context(), args[0])
			if errors.Is(err, hub.ErrNone) {
				return failure{fmt.Errorf("there is no snapshot %q: ashlar watch --once shows those that there are", args[0])}
			}
			if err != nil {
				return failure{err}
			}
			return writeFile(cmd.Context(), out, func(w io.Writer) error {
				_, err := io.Copy(w, r)
				return err
			})
		})
	}
	return cmd
}
