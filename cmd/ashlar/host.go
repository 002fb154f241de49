package main

import "github.com/spf13/cobra"

func newHost(std stdio) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "host COMMAND",
		Short: "CPU memory: which malloc a process uses, and which keeps it small",
		Long: `Host is about CPU memory: which malloc a process really uses, and which malloc,
with which settings, keeps a long-running process small.`,
		Args: cobra.ArbitraryArgs,
		RunE: noCommand,
	}
	cmd.AddCommand(newHostDetect(std), newHostRun(std), newHostBench(std), newHostCosts(std))
	return cmd
}
