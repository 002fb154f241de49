package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/ashlar-mem/ashlar/internal/view"
	"github.com/ashlar-mem/ashlar/internal/view/live"
	"github.com/ashlar-mem/ashlar/internal/watch"
)

// livePlace is the screen of running jobs.
const livePlace = "#//live"

// watchPage says how the page of the jobs is served.
type watchPage struct {
	view viewOptions
	open bool
}

func (o *watchPage) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&o.open, "open", false, "open the page in the browser")
	flags.IntVar(&o.view.port, "port", 0, "serve the page on this port; by default on a free one")
	flags.StringVar(&o.view.tokenFile, "token-file", "", "a `FILE` with the token of the page's address, readable by you alone")
	flags.StringVar(&o.view.at, "at", livePlace, "the `PLACE` of the page to open, as its button Link copies it")
}

// start listens for the page, and says where it is: on w.
func (o *watchPage) start(std stdio, w io.Writer, s *watch.Server) (*view.Server, error) {
	token, err := o.view.token()
	if err != nil {
		return nil, err
	}
	page, err := view.New(view.Options{
		Port: o.view.port, Token: token, Log: func(text string) { std.errorf("%s", text) }, Dry: answerLedger, Live: live.Jobs{Server: s},
	})
	if err != nil {
		return nil, err
	}
	o.view.noOpen = !o.open
	return page, o.view.announce(std, w, page)
}
