package input

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
	"strings"
	"sync"

	"github.com/ashlar-mem/ashlar/internal/unpack"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/snapshot/message"
	"github.com/ashlar-mem/ashlar/snapshot/stats"
)

// Kind says what an input is.
type Kind string

// The kinds of inputs.
const (
	Snapshot     Kind = "snapshot"
	MemoryStats  Kind = "memory_stats"
	OOMMessage   Kind = "oom_message"
	LibraryError Kind = "library_error" // of vLLM, transformers or accelerate, about memory
)

var kindWords = map[Kind]string{
	Snapshot: "a memory snapshot", MemoryStats: "a memory_stats() dump", OOMMessage: "an out-of-memory message", LibraryError: "an error of a library about memory",
}

// Words says what an input is in a sentence.
func (k Kind) Words() string { return kindWords[k] }

// Input is a file that was read.
type Input struct {
	Name string // as the user gave it
	Kind Kind

	Snapshot *snapshot.File // nil unless it is one
	Bytes    int64          // of the file; 0 if not known
	Writer   string         // what wrote a snapshot, "" if that cannot be told

	Dumps    []*stats.Dump
	Messages []*message.OOM // a log can have them beside dumps
	Refusals []*message.Refusal
}

// Options are where an input comes from and who follows its progress. The zero
// value is for no one.
type Options struct {
	Stdin    io.Reader               // what - stands for
	Progress func(read, total int64) // of a snapshot; total is 0 if not known
	Warn     func(text string)       // what is wrong with an input that can be used all the same
}

// headBytes is how much of a file is looked at to tell text from a pickle.
const headBytes = 64 << 10

// Open reads a file, or standard input for "-".
func Open(ctx context.Context, arg string, o Options) (*Input, error) {
	if arg == "-" {
		return Read(ctx, Name(arg), o.Stdin, o)
	}
	r := reader{ctx, o}
	file, err := Unblocked(ctx, func() (*os.File, error) { return os.Open(arg) })
	if err != nil {
		return nil, openProblem(arg, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, directoryProblem(arg)
	}
	in := &Input{Name: arg}
	source := io.Reader(file)
	if info.Mode().IsRegular() {
		in.Bytes = info.Size()
	} else {
		source = Waiting(ctx, file)
	}
	buffered := bufio.NewReaderSize(source, headBytes)
	head, err := unpackedHead(buffered)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", arg, err)
	}
	if !info.Mode().IsRegular() { // a pipe cannot be opened twice
		return r.stream(in, buffered, head)
	}
	open := func(opts snapshot.Options) (*snapshot.File, error) { return snapshot.Open(ctx, arg, opts) }
	if !isText(head) {
		return r.load(in, head, open)
	}
	if snapshot.BeginsOldPickle(head) { // or a log does
		if got, err := r.load(in, head, open); err == nil || ctx.Err() != nil {
			return got, err
		}
	}
	raw, err := io.ReadAll(io.LimitReader(buffered, maxText+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", arg, err)
	}
	return r.text(in, head, raw, open, func() (io.Reader, error) { return lastPart(file, head, in.Bytes) })
}

// Name returns what an answer calls a file.
func Name(arg string) string {
	if arg == "-" {
		return "stdin"
	}
	return arg
}

// Check says what is wrong with a file that is to be read later.
func Check(arg string) error {
	switch info, err := os.Stat(arg); {
	case arg == "-":
		return nil
	case err != nil:
		return openProblem(arg, err)
	case info.IsDir():
		return directoryProblem(arg)
	}
	return nil
}

// Read reads what comes in, under a name.
func Read(ctx context.Context, name string, from io.Reader, o Options) (*Input, error) {
	buffered := bufio.NewReaderSize(from, headBytes)
	head, err := unpackedHead(buffered)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return reader{ctx, o}.stream(&Input{Name: name}, buffered, head)
}

// FromMessage reads a text that was pasted in place of a file's name. The text
// may be such a name with a mistake in it.
func FromMessage(text string) (*Input, error) {
	const name = "the message"
	all, err := message.Parse(text)
	refusals := message.ParseRefusals(text)
	switch {
	case err == nil:
		return &Input{Name: name, Kind: OOMMessage, Messages: all, Refusals: refusals}, nil
	case len(refusals) > 0:
		return &Input{Name: name, Kind: LibraryError, Refusals: refusals}, nil
	}
	if _, err := os.Stat(text); errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(text, " \n") {
		return nil, fmt.Errorf("%s is neither a file nor an out-of-memory message; check the name, or paste the whole error", text)
	}
	return nil, errors.New("no out-of-memory message in the text; paste the whole error, from \"CUDA out of memory\" on")
}

// reader reads one input.
type reader struct {
	ctx context.Context
	Options
}

func (r reader) warn(format string, args ...any) {
	if r.Warn != nil {
		r.Warn(fmt.Sprintf(format, args...))
	}
}

// stream reads an input that comes once.
func (r reader) stream(in *Input, all io.Reader, head []byte) (*Input, error) {
	if !isText(head) {
		return r.load(in, head, func(opts snapshot.Options) (*snapshot.File, error) { return snapshot.Read(r.ctx, in.Name, all, opts) })
	}
	if snapshot.BeginsOldPickle(head) {
		begin := &beginning{r: all}
		got, err := r.load(in, head, func(opts snapshot.Options) (*snapshot.File, error) { return snapshot.Read(r.ctx, in.Name, begin, opts) })
		if err == nil || begin.lost || r.ctx.Err() != nil {
			return got, err
		}
		all = io.MultiReader(bytes.NewReader(begin.kept), all) // a log that begins so
	}
	raw, err := io.ReadAll(io.LimitReader(all, maxText+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", in.Name, err)
	}
	again := func() (io.Reader, error) { return io.MultiReader(bytes.NewReader(raw), all), nil }
	return r.text(in, head, raw, func(opts snapshot.Options) (*snapshot.File, error) {
		return snapshot.Read(r.ctx, in.Name, io.MultiReader(bytes.NewReader(raw), all), opts)
	}, again)
}

// beginning keeps what was read of a stream, so that it can be read again, as long as that is little.
type beginning struct {
	r    io.Reader
	kept []byte
	lost bool // it was more
}

func (b *beginning) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.lost = b.lost || len(b.kept)+n > 20*headBytes; b.lost {
		b.kept = nil
	} else {
		b.kept = append(b.kept, p[:n]...)
	}
	return n, err
}

type opener func(snapshot.Options) (*snapshot.File, error)

// load reads a snapshot.
func (r reader) load(in *Input, head []byte, open opener) (*Input, error) {
	f, err := open(snapshot.Options{Progress: r.Progress})
	if err != nil {
		return nil, err
	}
	if f.Truncated != nil {
		r.warn("%s: %v", f.Name, f.Truncated)
	}
	for _, w := range f.Warnings {
		r.warn("%s: %s", f.Name, w)
	}
	in.Kind, in.Snapshot, in.Writer = Snapshot, f, writerOf(head)
	return in, nil
}

// recordingHead matches the beginning of a recording.
var recordingHead = regexp.MustCompile(`^\{\s*"torch"\s*:\s*"[^"]*"\s*,\s*"(workload|scen)"`)

// ledgerHead matches the beginning of a dry run's ledger.
var ledgerHead = regexp.MustCompile(`^\{\s*"ashlar_dry"\s*:`)

// reportHead matches the beginning of a page that ashlar report wrote. Compiling it takes long.
var reportHead = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?i:<!doctype html>)[^\x00]{0,999}(<title>Ashlar</title>|<meta name="generator" content="ashlar )`)
})

// text finds out what a text is. JSON may be a snapshot; what is none may have
// a dump or a message in it, as may any other text. Of a long one only the end
// is searched, where the error is: raw is its beginning then, and again gives
// all of it, or at least that end.
func (r reader) text(in *Input, head, raw []byte, open opener, again func() (io.Reader, error)) (*Input, error) {
	var problem error
	first := bytes.TrimLeft(head, " \t\r\n\ufeff")
	if recordingHead.Match(first) { // also if it is truncated
		return nil, &OtherFileError{in.Name + " is a recording of the allocator's answers; ashlar verify replays it"}
	}
	if ledgerHead.Match(first) {
		return nil, &OtherFileError{in.Name + " is the ledger of a dry run; ashlar dry reads it"}
	}
	if bytes.HasPrefix(first, []byte("<")) && reportHead().Match(first) {
		return nil, &OtherFileError{in.Name + " is a page of ashlar report; open it in a browser, or give the snapshot that it was made from"}
	}
	long := len(raw) > maxText
	if bytes.HasPrefix(first, []byte("{")) || bytes.HasPrefix(first, []byte("[")) || bytes.HasPrefix(first, []byte("<")) || // a page with one in it
		long && bytes.HasPrefix(first, []byte("(")) { // a pickle of protocol 0
		got, err := r.load(in, head, open)
		if err == nil || long && in.Bytes == 0 || r.ctx.Err() != nil { // a stream is gone now
			return got, err
		}
		problem = err
		var format *snapshot.FormatError
		if errors.As(err, &format) && strings.HasPrefix(format.Seems, "a recording") {
			return nil, &OtherFileError{fmt.Sprintf("%s is %s; ashlar verify replays it", in.Name, format.Seems)}
		}
	}
	var source io.Reader = bytes.NewReader(raw)
	if long {
		var err error
		if source, err = again(); err != nil {
			return nil, fmt.Errorf("%s: %w", in.Name, err)
		}
	}
	plain, err := r.plainText(in.Name, head, source, long)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", in.Name, err)
	}
	dumps, err := stats.ParseAll(plain)
	in.Dumps = dumps
	text := string(plain)
	var crowded error
	if in.Messages, crowded = message.Parse(text); errors.Is(crowded, message.ErrCrowded) {
		r.warn("%s: %v", in.Name, crowded)
	}
	in.Refusals = message.ParseRefusals(text)
	var syntax *stats.SyntaxError
	damaged := errors.As(err, &syntax)
	switch {
	case len(in.Dumps) > 0:
		in.Kind = MemoryStats
	case len(in.Messages) > 0:
		in.Kind = OOMMessage
	case len(in.Refusals) > 0:
		in.Kind = LibraryError
	case damaged:
		return nil, fmt.Errorf("%s: %w", in.Name, err)
	case problem != nil:
		return nil, problem
	default:
		return r.noText(in, head, open)
	}
	if damaged {
		r.warn("%s: %v; it is left out", in.Name, err)
	}
	return in, nil
}

// noText ends with a text in which nothing was found. It may be a pickle of
// protocol 0, which is text.
func (r reader) noText(in *Input, head []byte, open opener) (*Input, error) {
	got, err := r.load(in, head, open)
	if err == nil {
		return got, nil
	}
	var format *snapshot.FormatError
	if len(head) == 0 {
		return nil, &OtherFileError{in.Name + ": the file is empty; give a snapshot, a memory_stats() dump or an out-of-memory message"}
	}
	if errors.As(err, &format) && format.Format == "" {
		return nil, &OtherFileError{in.Name + ": neither a memory snapshot nor text with a memory_stats() dump or an out-of-memory message;" +
			" give a file of torch.cuda.memory._dump_snapshot(), or paste the whole error"}
	}
	return nil, err
}

// OtherFileError says that a file is nothing that answers are made from.
type OtherFileError struct{ text string }

func (e *OtherFileError) Error() string { return e.text }

// IsOther reports whether an error of [Open] says that the file is something else,
// and not that it is damaged or cannot be read.
func IsOther(err error) bool {
	var other *OtherFileError
	var format *snapshot.FormatError
	return errors.As(err, &other) || errors.As(err, &format)
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

func directoryProblem(name string) error {
	return fmt.Errorf("%s: is a directory; name a file in it", name)
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
	plain, err := unpack.New(bytes.NewReader(raw), unpack.Ratio)
	if err != nil {
		return nil, nil // package snapshot says what is wrong
	}
	defer plain.Close()
	head := make([]byte, 4<<10)
	n, _ := io.ReadFull(plain, head) // the rest is cut off
	return head[:n], nil
}

// writerOf returns what wrote a snapshot, from its beginning (spec 10.1).
func writerOf(head []byte) string {
	switch {
	case len(head) < 4 || head[0] != 0x80:
		return ""
	case head[1] == 2 && (head[3] == '(' || head[2] == ']' && head[3] != 'q'):
		return "PyTorch's C++ code"
	}
	return fmt.Sprintf("Python (protocol %d)", head[1])
}

// Plausible says what is wrong with a file that is to be analysed later. Of a
// pickle it looks at the beginning alone; everything else is read.
func Plausible(ctx context.Context, arg string) error {
	if err := Check(arg); err != nil {
		return err
	}
	file, err := os.Open(arg)
	if err != nil {
		return openProblem(arg, err)
	}
	defer file.Close()
	head, err := unpackedHead(bufio.NewReaderSize(file, headBytes))
	if err == nil && len(head) > 0 && head[0] == 0x80 {
		return nil
	}
	_, err = Open(ctx, arg, Options{})
	return err
}
