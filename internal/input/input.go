package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"runtime/debug"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/snapshot/message"
	"github.com/ashlar-mem/ashlar/snapshot/stats"
)

// What an input can be.
const (
	kindSnapshot = "snapshot"
	kindStats    = "memory_stats"
	kindMessage  = "oom_message"
)

// input is what a FILE argument of a reading command turned out to be.
type input struct {
	name string
	kind string

	snapshot *snapshot.File
	bytes    int64            // of the file; 0 if not known
	writer   string           // what wrote a snapshot, "" if that cannot be told
	seen     *replay.Observed // by a replay of the chosen device; nil if there was none yet

	dumps    []*stats.Dump
	messages []*message.OOM // a log can have them beside dumps
}

// headBytes is how much of a file is looked at to tell text from a pickle.
const headBytes = 64 << 10

// gcPercent is how much garbage there may be while a snapshot is read or
// replayed, on top of what is in use.
const gcPercent = 50

// saveMemory has garbage collected sooner, for work on a large trace that makes
// little of it. The function it returns ends that.
func saveMemory() (end func()) {
	before := debug.SetGCPercent(gcPercent)
	return func() { debug.SetGCPercent(before) }
}

// readInput reads FILE, or standard input for "-", and finds out what it is.
// Warnings go to standard error.
func readInput(ctx context.Context, std stdio, arg string) (*input, error) {
	in, err := inputReader{ctx: ctx, std: std}.read(arg)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, failure{err}
	}
	if f := in.snapshot; f != nil {
		if f.Truncated != nil {
			std.errorf("%s: %v", f.Name, f.Truncated)
		}
		for _, w := range f.Warnings {
			std.errorf("%s: %s", f.Name, w)
		}
	}
	return in, nil
}

// inputReader reads one input.
type inputReader struct {
	ctx      context.Context
	std      stdio
	progress func(read, total int64) // instead of a line on the terminal; may be nil
}

func (r inputReader) read(arg string) (*input, error) {
	if arg == "-" {
		return r.stdin()
	}
	file, err := unblocked(r.ctx, func() (*os.File, error) { return os.Open(arg) })
	if err != nil {
		return nil, openProblem(arg, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, fmt.Errorf("%s: is a directory; name a file in it", arg)
	}
	in := &input{name: arg}
	source := io.Reader(file)
	if info.Mode().IsRegular() {
		in.bytes = info.Size()
	} else {
		source = &waitingReader{ctx: r.ctx, r: file}
	}
	buffered := bufio.NewReaderSize(source, headBytes)
	head, err := unpackedHead(buffered)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", arg, err)
	}
	if !info.Mode().IsRegular() { // a pipe cannot be opened twice
		return r.stream(in, buffered, head)
	}
	open := func(opts snapshot.Options) (*snapshot.File, error) { return snapshot.Open(r.ctx, arg, opts) }
	if !isText(head) {
		return r.load(in, head, open)
	}
	raw, err := io.ReadAll(io.LimitReader(buffered, maxText+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", arg, err)
	}
	return r.text(in, head, raw, open, func() (io.Reader, error) { return lastPart(file, head, in.bytes) })
}

func (r inputReader) stdin() (*input, error) { return r.named("stdin") }

// named reads what comes in, under a name.
func (r inputReader) named(name string) (*input, error) {
	buffered := bufio.NewReaderSize(r.std.in, headBytes)
	head, err := unpackedHead(buffered)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return r.stream(&input{name: name}, buffered, head)
}

// stream reads an input that comes once.
func (r inputReader) stream(in *input, all io.Reader, head []byte) (*input, error) {
	if !isText(head) {
		return r.load(in, head, func(opts snapshot.Options) (*snapshot.File, error) { return snapshot.Read(r.ctx, in.name, all, opts) })
	}
	raw, err := io.ReadAll(io.LimitReader(all, maxText+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", in.name, err)
	}
	again := func() (io.Reader, error) { return io.MultiReader(bytes.NewReader(raw), all), nil }
	return r.text(in, head, raw, func(opts snapshot.Options) (*snapshot.File, error) {
		return snapshot.Read(r.ctx, in.name, io.MultiReader(bytes.NewReader(raw), all), opts)
	}, again)
}

type opener func(snapshot.Options) (*snapshot.File, error)

// load reads a snapshot.
func (r inputReader) load(in *input, head []byte, open opener) (*input, error) {
	// Nearly all that is allocated while reading stays, so little is lost by
	// collecting the rest soon.
	defer saveMemory()()
	p := startProgress(r.std, 0, "MiB of "+in.name+" read")
	defer p.stop()
	told := r.progress
	if told == nil {
		told = func(read, total int64) { p.at(int(read>>20), int(total>>20)) }
	}
	f, err := open(snapshot.Options{Progress: told})
	if err != nil {
		return nil, err
	}
	in.kind, in.snapshot, in.writer = kindSnapshot, f, writerOf(head)
	return in, nil
}

// recordingHead matches the beginning of a recording.
var recordingHead = regexp.MustCompile(`^\{\s*"torch"\s*:\s*"[^"]*"\s*,\s*"(workload|scen)"`)

// text finds out what a text is. JSON may be a snapshot; what is none may have
// a dump or a message in it, as may any other text. Of a long one only the end
// is searched, where the error is: raw is its beginning then, and again gives
// all of it, or at least that end.
func (r inputReader) text(in *input, head, raw []byte, open opener, again func() (io.Reader, error)) (*input, error) {
	var problem error
	first := bytes.TrimLeft(head, " \t\r\n\ufeff")
	if recordingHead.Match(first) { // also if it is truncated
		return nil, fmt.Errorf("%s is a recording of the allocator's answers; ashlar verify replays it", in.name)
	}
	long := len(raw) > maxText
	if bytes.HasPrefix(first, []byte("{")) || bytes.HasPrefix(first, []byte("[")) || long && bytes.HasPrefix(first, []byte("(")) { // a pickle of protocol 0
		got, err := r.load(in, head, open)
		if err == nil || long && in.bytes == 0 || r.ctx.Err() != nil { // a stream is gone now
			return got, err
		}
		problem = err
		var format *snapshot.FormatError
		if errors.As(err, &format) && strings.HasPrefix(format.Seems, "a recording") {
			return nil, fmt.Errorf("%s is %s; ashlar verify replays it", in.name, format.Seems)
		}
	}
	var source io.Reader = bytes.NewReader(raw)
	if long {
		var err error
		if source, err = again(); err != nil {
			return nil, fmt.Errorf("%s: %w", in.name, err)
		}
	}
	plain, err := r.plainText(in.name, head, source, long)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", in.name, err)
	}
	dumps, err := stats.ParseAll(plain)
	in.dumps = dumps
	in.messages, _ = message.Parse(string(plain))
	var syntax *stats.SyntaxError
	damaged := errors.As(err, &syntax)
	switch {
	case len(in.dumps) > 0:
		in.kind = kindStats
	case len(in.messages) > 0:
		in.kind = kindMessage
	case damaged:
		return nil, fmt.Errorf("%s: %w", in.name, err)
	case problem != nil:
		return nil, problem
	default:
		return r.noText(in, head, open)
	}
	if damaged {
		r.std.errorf("%s: %v; it is left out", in.name, err)
	}
	return in, nil
}

// noText ends with a text in which nothing was found. It may be a pickle of
// protocol 0, which is text.
func (r inputReader) noText(in *input, head []byte, open opener) (*input, error) {
	got, err := r.load(in, head, open)
	if err == nil {
		return got, nil
	}
	var format *snapshot.FormatError
	if len(head) == 0 {
		return nil, fmt.Errorf("%s: the file is empty; give a snapshot, a memory_stats() dump or an out-of-memory message", in.name)
	}
	if errors.As(err, &format) && format.Format == "" {
		return nil, fmt.Errorf("%s: neither a memory snapshot nor text with a memory_stats() dump or an out-of-memory message;"+
			" give a file of torch.cuda.memory._dump_snapshot(), or paste the whole error", in.name)
	}
	return nil, err
}

// openProblem words why a file cannot be opened.
func openProblem(name string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: no such file; check the name", name)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: permission denied; make the file readable", name)
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return fmt.Errorf("%s: cannot be opened: %w", name, err)
}

// unpackedHead returns the beginning of what a file holds, without taking it
// out of the reader.
func unpackedHead(r *bufio.Reader) ([]byte, error) {
	raw, err := r.Peek(headBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		var path *fs.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	plain, stop, err := unpack(bytes.NewReader(raw), raw)
	if err != nil {
		return nil, nil // package snapshot says what is wrong
	}
	defer stop()
	head := make([]byte, 4<<10)
	n, _ := io.ReadFull(plain, head) // the rest is cut off
	return head[:n], nil
}

// writerOf tells from the beginning of a snapshot what wrote it (spec 10.1).
func writerOf(head []byte) string {
	switch {
	case len(head) < 4 || head[0] != 0x80:
		return ""
	case head[1] == 2 && (head[3] == '(' || head[2] == ']' && head[3] != 'q'):
		return "PyTorch's C++ code"
	}
	return fmt.Sprintf("Python (protocol %d)", head[1])
}
