package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ashlar-mem/ashlar/internal/hub"
)

// storeFlags say where the store of watch and fleet is.
type storeFlags struct {
	dir, hub, creds string
}

func (o *storeFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.dir, "dir", "", "`FOLDER` of the store; by default $XDG_STATE_HOME/ashlar/watch")
	flags.StringVar(&o.hub, "hub", "", "use a NATS cluster instead, `URL`")
	flags.StringVar(&o.creds, "creds", "", "`FILE` with the credentials for the cluster")
}

func (o *storeFlags) check() error {
	switch {
	case o.hub != "" && o.dir != "":
		return errors.New("--hub keeps everything in the cluster: leave --dir out")
	case o.creds != "" && o.hub == "":
		return errors.New("--creds is for --hub: give both")
	}
	return nil
}

// open opens the store. What the flags say is added to the options.
func (o *storeFlags) open(ctx context.Context, options hub.Options) (*hub.Hub, error) {
	options.Dir, options.URL, options.Creds = o.dir, o.hub, o.creds
	if o.dir == "" && o.hub == "" {
		state := os.Getenv("XDG_STATE_HOME")
		if state == "" {
			home, err := os.UserHomeDir()
			if err != nil {
				return nil, fmt.Errorf("there is no folder for the store (%w): give --dir", err)
			}
			state = filepath.Join(home, ".local", "state")
		}
		options.Dir = filepath.Join(state, "ashlar", "watch")
	}
	return hub.Open(ctx, options)
}
