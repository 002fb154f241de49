package view

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/view/http"
)

// loadAll reads the files of the command line one after the other.
func (s *Server) loadAll(ctx context.Context) {
	for i, file := range s.opts.Files {
		id := i + 1 // as announced
		var runs []*pageRun
		err := guard(file, func() error {
			in, err := s.open(ctx, file, func(read, total int64) { s.runs.progress(id, read, total) })
			if err == nil {
				runs, err = s.newRuns(ctx, in)
			}
			return err
		})
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			s.opts.Log(err.Error())
			s.runs.failed(id, err)
			continue
		}
		s.runs.replace(id, false, runs)
		for _, r := range runs { // what the page asks for first
			s.prepare(r)
		}
	}
}

// prepare begins with what the page asks for first. An explanation takes all
// cores and is made only when it is asked for.
func (s *Server) prepare(r *pageRun) {
	s.spawn(func() { r.documents.stats.get(r.ctx, r.ctx) })
	s.spawn(func() { r.overview() })
}

// newRuns makes the runs of a file: one for each device that has something, in
// the order of their numbers, then host memory.
func (s *Server) newRuns(ctx context.Context, in *input.Input) ([]*pageRun, error) {
	traces := input.Devices(in.Snapshot)
	devices := len(traces)
	if h := in.Snapshot.Host; h != nil && (h.Events.Len() > 0 || len(h.Segments) > 0) {
		traces = append(traces, h)
	}
	chosen, _, _ := input.Pick(in.Snapshot, input.AnyDevice) // without one, none is
	var runs []*pageRun
	for _, t := range traces {
		// The only device of a file is the one that the commands take by themselves.
		d := input.Device{Number: -1, Host: t.Host}
		if devices > 1 && !t.Host {
			d.Number = t.Device
		}
		r, err := newRun(ctx, in, t, d)
		if err != nil {
			return nil, err
		}
		r.chosen = t == chosen
		_, r.reason, _ = input.Pick(in.Snapshot, d) // it is there
		r.ctx, r.end = context.WithCancel(s.ctx)
		r.documents = s.newDocuments(r)
		runs = append(runs, r)
	}
	if len(runs) == 0 {
		return nil, errors.New(in.Name + " has no device with an event or a segment")
	}
	return runs, nil
}

// openFile reads a file of the command line.
func (s *Server) openFile(ctx context.Context, file string, progress func(read, total int64)) (*input.Input, error) {
	return mustBeSnapshot(input.Open(ctx, file, input.Options{Stdin: s.opts.Stdin, Progress: progress}))
}

// readDropped reads a file that comes with a request; its size is -1 if that is
// not known.
func readDropped(ctx context.Context, name string, r io.Reader, size int64) (*input.Input, error) {
	in, err := input.Read(ctx, name, r, input.Options{})
	if err == nil && size > 0 {
		in.Bytes = size
	}
	return in, err
}

func mustBeSnapshot(in *input.Input, err error) (*input.Input, error) {
	if err == nil && in.Kind != input.Snapshot {
		return nil, fmt.Errorf("%s is %s, not a memory snapshot: drop it onto the page, or give it to ashlar explain", in.Name, in.Kind.Words())
	}
	return in, err
}

// A file has this time to come, and more if it is large, with no longer pause; and a line of an answer to be taken: others wait for their turn.
const (
	bodyTime    = 30 * time.Second
	minRate     = 16 << 10 // bytes a second, on average
	crowdedRate = 1e6      // the same while others wait
	beginBytes  = 64 << 10 // that are there before a file takes its turn
	mostComing  = 64       // files that begin, or wait for their turn
)

// cappedBody keeps the error of a body that is too large, too slow, or that breaks
// off.
type cappedBody struct {
	r     io.Reader
	grace time.Duration // beside the time that minRate gives, and the longest pause
	until func(time.Time) error
	head  []byte // of what was read before
	read  int64
	took  time.Duration // what was read
	err   error

	// crowded reports whether others wait for this one to end: then it has to come faster, from then on.
	crowded func() bool
	hurried bool // it was when it was read last
}

// capped is the body of a request.
func (s *Server) capped(w http.ResponseWriter, r *http.Request, most int64) *cappedBody {
	return &cappedBody{
		r: http.MaxBytesReader(w, r.Body, most), grace: s.grace, until: http.NewResponseController(w).SetReadDeadline,
		crowded: func() bool { return false },
	}
}

func (b *cappedBody) Read(p []byte) (int, error) {
	if len(b.head) > 0 {
		n := copy(p, b.head)
		b.head = b.head[n:]
		return n, nil
	}
	rate := int64(minRate)
	crowded := b.crowded()
	if crowded {
		rate = crowdedRate
	}
	if crowded && !b.hurried {
		b.read, b.took = 0, 0
	}
	b.hurried = crowded
	begun := time.Now()
	left := b.grace + time.Duration(float64(b.read)/float64(rate)*float64(time.Second)) - b.took
	_ = b.until(begun.Add(min(left, b.grace))) // not every connection can; what came fast buys no time to stall
	n, err := b.r.Read(p)
	b.read += int64(n)
	b.took += time.Since(begun)
	if errors.Is(err, io.EOF) { // else net/http reads the rest, for as long as it may
		_ = b.until(time.Time{})
	}
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		b.err = err
	case errors.Is(err, os.ErrDeadlineExceeded):
		b.err = refuse(http.StatusRequestTimeout, "the body comes too slowly: send the file again, or give it on the command line instead")
	case errors.Is(err, io.ErrUnexpectedEOF):
		b.err = badRequest("the body ended early: send the file again")
	}
	return n, err
}

// readAll reads a body that is no file.
func (b *cappedBody) readAll() ([]byte, error) {
	data, err := io.ReadAll(b)
	return data, cmp.Or(b.err, err)
}

// begin reads the first bytes, or all of a small file: whoever sends nothing keeps nobody waiting.
func (b *cappedBody) begin() error {
	head := make([]byte, beginBytes)
	n, err := io.ReadFull(b, head)
	if b.head = head[:n]; b.err != nil {
		return b.err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}
