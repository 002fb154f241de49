package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/ashlar-mem/ashlar/internal/input"
)

// deviceFlag is --device: the number of a device, or host.
type deviceFlag struct {
	number int // -1 for the most interesting one
	host   bool
}

func addDeviceFlag(cmd *cobra.Command) *deviceFlag {
	d := &deviceFlag{number: -1}
	cmd.Flags().Var(d, "device", "device of a snapshot with several, or host; by default the one that ran out of memory, else the busiest")
	return d
}

func (d *deviceFlag) Set(s string) error {
	if s == "host" {
		*d = deviceFlag{number: -1, host: true}
		return nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return fmt.Errorf("write the number of a device, or host")
	}
	*d = deviceFlag{number: n}
	return nil
}

// choice returns what the flag says.
func (d *deviceFlag) choice() input.Device { return input.Device{Number: d.number, Host: d.host} }

func (d *deviceFlag) Type() string { return "N" }

func (d *deviceFlag) complete() []string { return []string{"host"} }

func (d *deviceFlag) String() string {
	switch {
	case d.host:
		return "host"
	case d.number < 0:
		return ""
	}
	return strconv.Itoa(d.number)
}
