package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

func newHost(std stdio) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "host COMMAND",
		Short: "CPU memory: which malloc a process uses, and which keeps it small",
		Long: `Host is about CPU memory: which malloc a process really uses, and which malloc,
with which settings, keeps a long-running process small.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %q", "host "+args[0])
			}
			return errors.New("no command given")
		},
	}
	cmd.AddCommand(newHostDetect(std), newHostRun(std), newHostBench(std))
	return cmd
}
