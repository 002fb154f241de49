package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/view"
)

// viewOptions are the flags of view.
type viewOptions struct {
	port      int
	tokenFile string
	at        string
	noOpen    bool
}

func newView(std stdio) *cobra.Command {
	var o viewOptions
	cmd := &cobra.Command{
		Use:   "view [FILE ...]",
		Short: "Show snapshots in the browser",
		Long: `View serves a page that shows memory snapshots: the verdict, the timeline of
all allocations, the segments at any moment, who holds the memory, the events,
what other settings would have done, and how runs differ. It prints the address
of the page and opens it in the browser.

Each FILE is a memory snapshot of PyTorch as pickle, JSON or a page of PyTorch's
memory viewer, compressed with gzip, zstd or not; several are several ranks or runs. Files can also be dropped
onto the page. Nothing leaves the machine: the page is served on the loopback
interface, under an address that nobody can guess.

Without a FILE the page offers where to begin: a file, a sample run, an
out-of-memory message to explain, the playground (PyTorch's allocator, step by
step or by hand, with every rule that it applies explained in a sentence) and
Plan, which predicts the memory of a run from a model's config.json.

--at opens the page at a place, as its button "Copy link" writes it. The address
is another one each time. --port and a token of your own keep it: the token is
the text of --token-file, or else of the environment variable
ASHLAR_VIEW_TOKEN, and has at least 32 letters, digits, - or _. Whoever knows it
and can connect to the port sees the files.

Without a display, or over SSH, the line to reach the page from your own machine
is shown on the terminal, too: ssh -L PORT:127.0.0.1:PORT HOST.

Ctrl-C ends it.

Exit status: 0 ended, 2 a FILE does not exist, a flag or the token is wrong, or
the port cannot be used.`,
		Example: "  ashlar view snapshot.pickle\n  ashlar view rank*.pickle.gz\n  ashlar view --no-open --port 8080 snapshot.pickle\n" +
			"  ashlar view snapshot.pickle --at '#/1/timeline?event=18434'\n  ashlar view",
	}
	cmd.Flags().IntVar(&o.port, "port", 0, "serve on this port; by default on a free one")
	cmd.Flags().StringVar(&o.tokenFile, "token-file", "", "a `FILE` with the token of the address, readable by you alone")
	cmd.Flags().StringVar(&o.at, "at", "", "the `PLACE` to open, such as '#/1/timeline'")
	cmd.Flags().BoolVar(&o.noOpen, "no-open", false, "do not open the browser")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.check(); err != nil {
			return err
		}
		return o.run(cmd.Context(), std, args)
	}
	return cmd
}

func (o *viewOptions) check() error {
	if o.port < 0 || o.port > 65535 {
		return fmt.Errorf("--port is %d: it must be from 1 to 65535", o.port)
	}
	if o.at != "" {
		if err := view.CheckPlace(o.at); err != nil {
			return fmt.Errorf("--at: %w", err)
		}
	}
	return nil
}

func (o *viewOptions) run(ctx context.Context, std stdio, files []string) error {
	stdin := false
	for _, file := range files {
		if file == "-" && stdin {
			return fmt.Errorf("- is given twice: standard input can be read once")
		}
		stdin = stdin || file == "-"
		if err := input.Check(file); err != nil {
			return failure{err}
		}
	}
	token, err := o.token()
	if err != nil {
		return failure{err}
	}
	// What is kept of a file is large and stays, so garbage is collected sooner.
	debug.SetGCPercent(gcPercent)
	s, err := view.New(view.Options{
		Port: o.port, Token: token, Files: files, Stdin: std.in,
		Log: func(text string) { std.errorf("%s", text) },
		Dry: answerLedger,
	})
	if err != nil {
		return failure{err}
	}
	if err := o.announce(std, std.out, s); err != nil {
		return failure{err}
	}
	endless(ctx)
	if err := s.Serve(ctx); err != nil {
		return failure{fmt.Errorf("the page cannot be served any more: %w", err)}
	}
	return nil
}

// announce says where a page is, and opens it if it should be.
func (o *viewOptions) announce(std stdio, w io.Writer, s *view.Server) error {
	address := s.Address() + o.at
	if _, err := fmt.Fprintln(w, address); err != nil {
		return fmt.Errorf("writing the address: %w", err)
	}
	if line := tunnel(s.Port(), os.Getenv); line != "" && std.terminal {
		std.errorf("to see the page on your own machine, run there and then open the address above:\n  %s", line)
	}
	if !o.noOpen {
		openBrowser(address)
	}
	return nil
}

// openBrowser shows the page if there is a screen to show it on. Whoever has
// none has the address.
func openBrowser(address string) {
	var cmd *exec.Cmd
	switch {
	case runtime.GOOS == "darwin":
		cmd = exec.Command("open", address)
	case runtime.GOOS == "windows":
		cmd = exec.Command("rundll32", "url.dll,FileProtocolHandler", address)
	case os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != "":
		cmd = exec.Command("xdg-open", address)
	default:
		return
	}
	if cmd.Start() == nil {
		go cmd.Wait() // however it ends
	}
}
