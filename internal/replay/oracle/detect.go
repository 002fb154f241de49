package oracle

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"

	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/replay/verify"
	"github.com/ashlar-mem/ashlar/settings/pytorch"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

// Options say how files are verified. The zero value picks device 0; use
// AnyDevice to let each snapshot's own content decide.
type Options struct {
	Device int  // of a snapshot with several
	Host   bool // its page-locked host memory instead
	// Version is the release of PyTorch that wrote the files, instead of what they
	// tell; 0 leaves it to them.
	Version pytorch.Version
}

// AnyDevice stands for the device of a snapshot that ran out of memory, or
// else was busiest.
const AnyDevice = -1

// verifySource finds out what a source is and verifies it.
func verifySource(ctx context.Context, src Source, opts Options) (*replay.Result, error) {
	in, err := src.Open()
	if err != nil {
		return nil, openError(src.Name, err)
	}
	defer in.Close()
	if err := refuseDirectory(src.Name, in); err != nil {
		return nil, err
	}
	head := bufio.NewReaderSize(in, 64<<10)
	if !looksLikeSnapshot(head) {
		rest := io.Reader(head)
		return verifyRecording(ctx, Source{Name: src.Name, Open: func() (io.ReadCloser, error) { return reader{rest, in}, nil }}, opts)
	}
	var f *snapshot.File
	if src.Path != "" {
		f, err = snapshot.Open(ctx, src.Path, snapshot.Options{}) // also watches for changes
	} else {
		f, err = snapshot.Read(ctx, src.Name, head, snapshot.Options{})
	}
	if err != nil {
		return nil, err
	}
	return verifySnapshot(ctx, f, opts)
}

// reader reads what was looked at before and closes the file under it.
type reader struct {
	io.Reader
	io.Closer
}

// looksLikeSnapshot tells a snapshot from a recording by the beginning of the
// content. Recordings are JSON objects that begin with other keys.
func looksLikeSnapshot(in *bufio.Reader) bool {
	head, _ := in.Peek(in.Size())
	if bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")) {
		return true // zstd: recordings are not compressed with it
	}
	if bytes.HasPrefix(head, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(bytes.NewReader(head))
		if err != nil {
			return false
		}
		inside := make([]byte, 512)
		n, _ := io.ReadFull(z, inside)
		head = inside[:n]
	}
	text := bytes.TrimLeft(head, " \t\r\n")
	if len(text) == 0 {
		return false
	}
	if text[0] != '{' {
		return true // a pickle, a list of segments, or something that is neither
	}
	key := bytes.TrimLeft(text[1:], " \t\r\n")
	for _, k := range []string{"segments", "device_traces", "allocator_settings", "external_annotations"} {
		if bytes.HasPrefix(key, []byte(`"`+k+`"`)) {
			return true
		}
	}
	return false
}

func verifySnapshot(ctx context.Context, f *snapshot.File, opts Options) (*replay.Result, error) {
	t, why, err := f.Pick(opts.Device)
	if opts.Host {
		if t, why, err = f.Host, "", nil; t == nil {
			err = fmt.Errorf("%s has no host memory", f.Name)
		}
	}
	if err != nil {
		return nil, err
	}
	if opts.Version != 0 {
		f.SetWriter(opts.Version)
	}
	if t.Platform == trace.Profiler {
		return nil, fmt.Errorf("%s was made by profile_plot, not by an allocator, so there is nothing to replay", f.Name)
	}
	v, err := verify.Run(ctx, t, verify.Options{NoSizes: true})
	if err != nil {
		if ctx.Err() == nil {
			err = fmt.Errorf("%s: the events cannot be replayed: %w", f.Name, err)
		}
		return nil, err
	}
	r := v.Result
	r.File = f.Name
	if other := replay.NotModelled(t); other != "" {
		r.Notes = append([]string{other}, r.Notes...)
	}
	if why != "" {
		r.Notes = append(r.Notes, why)
	}
	if f.Truncated != nil {
		r.Warnings = append(r.Warnings, f.Truncated.String())
	}
	r.Warnings = append(r.Warnings, f.Warnings...)
	r.Contradictions = f.Contradictions
	r.Notes = append(r.Notes, r.Warnings...)
	return r, nil
}

func verifyRecording(ctx context.Context, src Source, opts Options) (*replay.Result, error) {
	rec, err := Load(ctx, src)
	if err != nil {
		return nil, err
	}
	if opts.Version != 0 {
		rec.Torch = opts.Version.String()
	}
	r, err := Verify(ctx, rec)
	if err != nil {
		if ctx.Err() == nil {
			err = &InputError{File: src.Name, Problem: err.Error(), Advice: "correct the recording's settings", Err: err}
		}
		return nil, err
	}
	r.File = src.Name
	return r, nil
}
