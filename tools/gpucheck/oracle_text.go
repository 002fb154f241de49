package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/ashlar-mem/ashlar/internal/units"
)

// write prints the proof of every tie, and below it the table.
func (r *oracleReport) write(w io.Writer) {
	for i := range r.Recordings {
		r.Recordings[i].explain(w)
	}
	fmt.Fprintln(w, r.Device)
	for i := range r.Recordings {
		if t := r.Recordings[i].TotalBytes; t != 0 && t != r.Device.TotalBytes {
			fmt.Fprintf(w, "the recorded device had %d bytes, this one has %d; limits and address ranges are those of the recorded one\n", t, r.Device.TotalBytes)
			break
		}
	}
	fmt.Fprintln(w)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "recording\toperations\tstatistics equal\tlayout\twith ties as recorded")
	equal, explained := 0, 0
	for i := range r.Recordings {
		x := &r.Recordings[i]
		switch {
		case x.OK && x.LayoutEqual:
			equal++
		case x.OK:
			explained++
		}
		fmt.Fprintf(tw, "%s\t%d of %d\t%d of %d\t%s\t%s\n", strings.TrimSuffix(x.File, ".json.gz"), x.Performed, x.Operations, x.CheckpointsEqual, x.Checkpoints, x.layout(), x.inOrder())
	}
	tw.Flush()
	var done, waited, held int64
	for i := range r.Recordings {
		x := &r.Recordings[i]
		done, waited, held = done+x.EventsDone, waited+x.EventsWaited, held+x.EventsHeld
	}
	fmt.Fprintf(w, "\nof the events that the recordings have done, %s were done on the device too and %s were waited for; %s answers \"not done\" came from the recordings\n",
		units.Count(done), units.Count(waited), units.Count(held))
	fmt.Fprintf(w, "%d recordings: layout and statistics equal in %d; parted at a tie that is shown, and identical with ties as recorded, in %d; wrong in %d\n",
		len(r.Recordings), equal, explained, len(r.Recordings)-equal-explained)
}

func (r *oracleResult) layout() string {
	switch {
	case r.Error != "":
		return "failed"
	case r.Failed != "":
		return fmt.Sprintf("the device failed at operation %d", r.Performed)
	case r.Performed < r.Operations:
		return fmt.Sprintf("stopped at operation %d: it ended in another way", r.Performed)
	case r.LayoutEqual && r.Ties == 0:
		return "equal"
	case r.LayoutEqual:
		return fmt.Sprintf("equal, %s among free segments", plural(r.Ties, "tie"))
	case r.Parted.Tie != nil:
		return fmt.Sprintf("parted at operation %d: a tie", r.Parted.Operation)
	case r.Explained:
		return fmt.Sprintf("parted at operation %d, after a tie", r.Parted.Operation)
	}
	return fmt.Sprintf("DIFFERENT at operation %d", r.Parted.Operation)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (r *oracleResult) inOrder() string {
	switch {
	case r.Recorded == nil:
		return "-"
	case r.Recorded.Identical:
		return fmt.Sprintf("identical, %s events", units.Count(int64(r.Recorded.Events)))
	}
	return "DIFFERENT"
}

// explain prints what a reader needs to judge a recording in which addresses,
// or something else, made a difference.
func (r *oracleResult) explain(w io.Writer) {
	if r.Error != "" {
		fmt.Fprintf(w, "%s: %s\n\n", r.File, r.Error)
		return
	}
	d := r.Parted
	if t := r.FirstTie; t != nil && (d == nil || t != d.Tie) {
		fmt.Fprintf(w, "%s, operation %d (%s): the first of %s, settled by exchanging free segments\n", r.File, t.Operation, t.Text, plural(r.Ties, "tie"))
		t.write(w)
	}
	if d != nil {
		fmt.Fprintf(w, "%s, operation %d (%s): %s\n", r.File, d.Operation, d.Text, d.What)
		fmt.Fprintf(w, "  recorded:      %s\n  on the device: %s\n", orNothing(d.Recorded), orNothing(d.Device))
		switch {
		case d.Tie != nil:
			d.Tie.write(w)
		case r.Explained:
			fmt.Fprintf(w, "  no tie, but it may follow from the first one: garbage collection goes by how long segments have been free\n")
		case d.NotTie != "":
			fmt.Fprintf(w, "  not a tie: %s\n", d.NotTie)
		}
	}
	if r.Failed != "" {
		fmt.Fprintf(w, "  the run was stopped at operation %d: %s\n", r.Performed, r.Failed)
	} else if r.Performed < r.Operations {
		fmt.Fprintf(w, "  the run was stopped at operation %d, which failed in one run only\n", r.Performed)
	}
	if r.Refused > 0 {
		fmt.Fprintf(w, "  after that the limit refused %s in one run only\n", plural(r.Refused, "allocation"))
	}
	if r.Recorded != nil && !r.Recorded.Identical {
		fmt.Fprintf(w, "  with ties broken as recorded: %s\n", r.Recorded.First)
	}
	if r.Ties > 0 || d != nil {
		fmt.Fprintln(w)
	}
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}

// candidatesShown is how many blocks of a tie are listed besides those taken.
const candidatesShown = 4

func (t *tie) write(w io.Writer) {
	half := "small"
	if t.Large {
		half = "large"
	}
	fmt.Fprintf(w, "  a tie: the %s is one of %d, each of %s, in the %s pool of stream %d; the addresses decide:\n",
		t.Choice, len(t.Candidates), units.Size(t.SizeBytes), half, t.Stream)
	left := 0
	for i, c := range t.Candidates {
		mark := ""
		if c.Recorded {
			mark += "  <- taken in the recording"
		}
		if c.Device {
			mark += "  <- taken on the device"
		}
		if i >= candidatesShown && mark == "" {
			left++
			continue
		}
		fmt.Fprintf(w, "    recorded %#x  device %#x%s\n", c.RecordedAddr, c.DeviceAddr, mark)
	}
	if left > 0 {
		fmt.Fprintf(w, "    and %d more\n", left)
	}
}
