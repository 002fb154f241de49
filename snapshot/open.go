package snapshot

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/ashlar-mem/ashlar/internal/pickle"
	"github.com/ashlar-mem/ashlar/internal/unpack"
)

// Options say how to read a file. The zero value will do.
type Options struct {
	// Progress is called now and then with how much of the file has been read; total
	// is 0 if its size is not known.
	Progress func(read, total int64)
	Limits   Limits
}

// Open reads the snapshot with the given path.
func Open(ctx context.Context, path string, opts Options) (*File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	before, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if before.IsDir() {
		return nil, &FormatError{Name: path, Seems: "a directory"}
	}
	total := int64(0)
	if before.Mode().IsRegular() {
		total = before.Size()
	}
	f, err := read(ctx, path, file, total, opts)
	if after, statErr := file.Stat(); statErr == nil && before.Mode().IsRegular() &&
		(after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime())) {
		return nil, fmt.Errorf("%s changed while it was read (%d bytes before, %d after): wait until it is written, then try again",
			path, before.Size(), after.Size())
	}
	return f, err
}

// Read reads a snapshot from r. The name is for messages.
func Read(ctx context.Context, name string, r io.Reader, opts Options) (*File, error) {
	return read(ctx, name, r, 0, opts)
}

func read(ctx context.Context, name string, r io.Reader, total int64, opts Options) (*File, error) {
	limits := opts.Limits.withDefaults()
	source := &source{ctx: ctx, r: r, total: total, progress: opts.Progress}
	f := &File{Name: name}
	plain, err := unpack.New(source, limits.Ratio)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer plain.Close()
	f.Compression = plain.Compression
	b := newBuilder(limits)
	if err := f.load(b, plain.Reader); err != nil {
		var format *FormatError
		if errors.As(err, &format) {
			return nil, format
		}
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if f.Truncated == nil {
		f.drain(plain)
	}
	if events, segments := f.content(); events == 0 && segments == 0 {
		if f.Truncated != nil {
			return nil, fmt.Errorf("%s: %v: nothing can be told from it, copy it again", name, f.Truncated)
		}
		return nil, fmt.Errorf("%s: a snapshot without an event or a segment: record one with torch.cuda.memory._record_memory_history()", name)
	}
	return f, nil
}

// load reads a decompressed file.
func (f *File) load(b *builder, r *bufio.Reader) error {
	head, err := r.Peek(sniffBytes)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if isPage(head) {
		f.Page = true
		if r, err = unwrapPage(f.Name, r); err != nil {
			return err
		}
		if head, err = r.Peek(sniffBytes); len(head) == 0 {
			return err
		}
	}
	f.Format, err = sniff(f.Name, head)
	if err != nil {
		return err
	}
	var top pickle.Value
	var rest []byte // read ahead
	if f.Format == "json" {
		d := newJSONDecoder(r, b.machine, b.limits)
		b.offset = d.offset
		top, err = d.decode()
		f.Bytes, rest = d.offset(), d.buf[d.pos:d.end]
	} else {
		d := pickle.NewDecoder(r, b.machine)
		b.offset = d.Offset
		top, err = d.Decode()
		f.Bytes, rest = d.Offset(), d.Buffered()
	}
	if !f.Page { // which goes on, after some zeros that fill the last group of base64
		f.trailing = len(bytes.TrimSpace(rest))
	}
	var end *pickle.TruncatedError
	switch {
	case errors.As(err, &end):
		f.Bytes = end.Offset
		return b.salvage(f, end)
	case err != nil:
		return err
	}
	return b.assemble(f, top)
}

// maxTrailing is how much is read of what stands behind a snapshot.
const maxTrailing = 1 << 20

// drain reads the file to its end: compressed files have a checksum there.
func (f *File) drain(r io.Reader) {
	n, err := io.CopyN(io.Discard, r, maxTrailing)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, context.Canceled) { // whoever cancels says so
		f.warn("the end of the file: %v", err)
	}
	if n += int64(f.trailing); n > 0 && !f.Page {
		f.warn("the file goes on for %d bytes or more behind the snapshot; they are ignored", n)
	}
}
