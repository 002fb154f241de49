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
	tokenFile, ca   string // of a server that ashlar fleet serve --listen made
	cmd             *cobra.Command
}

func (o *storeFlags) add(cmd *cobra.Command) {
	o.cmd = cmd
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
	case (o.tokenFile != "" || o.ca != "") && o.hub == "":
		return errors.New("--token-file and --ca are for --hub: give it, too")
	}
	return nil
}

// addServer adds the flags for a hub that is no cluster but another ashlar.
func (o *storeFlags) addServer(cmd *cobra.Command) {
	o.add(cmd)
	cmd.Flags().StringVar(&o.tokenFile, "token-file", "", "`FILE` with the token of ashlar fleet serve --listen")
	cmd.Flags().StringVar(&o.ca, "ca", "", "`FILE` with the certificate by which --hub is checked, PEM; by default those of the system")
}

// open opens the store. What the flags say is added to the options.
func (o *storeFlags) open(ctx context.Context, options hub.Options) (*hub.Hub, error) {
	options.Dir, options.URL, options.Creds, options.CA = o.dir, o.hub, o.creds, o.ca
	options.Log = func(text string) { stdio{err: o.cmd.ErrOrStderr()}.errorf("%s", text) }
	if o.hub != "" && o.tokenFile != "" {
		token, err := readToken(o.tokenFile)
		if err != nil {
			return nil, fmt.Errorf("--token-file: %w", err)
		}
		options.Token = token
	}
	if o.hub == "" {
		dir, err := o.folder()
		if err != nil {
			return nil, err
		}
		options.Dir = dir
	}
	return hub.Open(ctx, options)
}

// folder is where the store is if it is in no cluster.
func (o *storeFlags) folder() (string, error) {
	if o.dir != "" {
		return o.dir, nil
	}
	state := os.Getenv("XDG_STATE_HOME")
	if state == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("there is no folder for the store (%w): give --dir", err)
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "ashlar", "watch"), nil
}
