package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

// newLoad is for tools/scripts/bench-load: it reads a snapshot and does nothing else.
func newLoad(std stdio) *cobra.Command {
	return &cobra.Command{
		Use:    "load FILE",
		Short:  "Read a snapshot and say how long it took",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			begin := time.Now()
			f, err := readSnapshot(cmd.Context(), std, args[0])
			if err != nil {
				return err
			}
			seconds := time.Since(begin).Seconds()
			events := 0
			for _, t := range f.Traces {
				events += t.Events.Len()
			}
			fmt.Fprintf(std.out, "%s: %s events, %.3f s\n", f.Name, count(events), seconds)
			return nil
		},
	}
}
