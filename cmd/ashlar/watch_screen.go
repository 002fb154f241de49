package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/ashlar-mem/ashlar/internal/present/text"
	"github.com/ashlar-mem/ashlar/internal/watch"
)

// alarmLine is an alarm as --json prints it.
type alarmLine struct {
	Kind string `json:"kind"`
	watch.Alarm
}

// watchScreen is what the user sees while jobs are watched.
type watchScreen struct {
	std  stdio
	json bool

	mu    sync.Mutex
	drawn int      // lines of the table
	notes []string // the last ones, under the table
	err   error
}

// maxNotes is how many notes the table shows.
const maxNotes = 5

func (w *watchScreen) table() bool { return !w.json && w.std.style().Bold }

func (w *watchScreen) log(text string) {
	if !w.table() {
		w.std.errorf("%s", text)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes = append(w.notes, time.Now().Format("15:04:05 ")+text)
	w.notes = w.notes[max(0, len(w.notes)-maxNotes):]
}

func (w *watchScreen) line(document any) {
	line, err := json.Marshal(document)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil && w.err == nil {
		_, w.err = w.std.out.Write(append(line, '\n'))
	}
}

// show draws the table until the context ends, or looks whether lines can still
// be written.
func (w *watchScreen) show(ctx context.Context, s *watch.Server) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		if w.table() {
			w.draw(s)
		}
		w.mu.Lock()
		err := w.err
		w.mu.Unlock()
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// cut leaves as much of a page as the terminal has lines for: what has left the
// screen cannot be drawn anew.
func (w *watchScreen) cut(page string) string {
	f, ok := w.std.out.(*os.File)
	if !ok {
		return page
	}
	_, height, err := term.GetSize(int(f.Fd()))
	lines := strings.SplitAfter(page, "\n")
	if err != nil || height < 3 || len(lines) <= height {
		return page
	}
	shown := height - 2
	return strings.Join(lines[:shown], "") + fmt.Sprintf("... %d more lines: ashlar watch --once shows all\n", len(lines)-1-shown)
}

func (w *watchScreen) draw(s *watch.Server) {
	w.mu.Lock()
	defer w.mu.Unlock()
	st := s.Status()
	st.Notes = append(st.Notes, w.notes...)
	var page bytes.Buffer
	if w.err = text.Watch(&page, &st, w.std.style()); w.err != nil {
		return
	}
	out := strings.ReplaceAll(w.cut(page.String()), "\n", "\x1b[K\n") // what was longer goes
	if w.drawn > 0 {
		out = fmt.Sprintf("\x1b[%dA", w.drawn) + out
	}
	w.drawn = strings.Count(out, "\n")
	_, w.err = io.WriteString(w.std.out, out+"\x1b[J")
}
