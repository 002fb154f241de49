package oracle

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/ashlar-mem/ashlar/internal/unpack"
)

// Source is a place a recording or a snapshot is read from.
type Source struct {
	Name string
	Path string // of the file, if it is one
	Open func() (io.ReadCloser, error)
}

// File returns the Source that reads the named file.
func File(path string) Source {
	return Source{Name: path, Path: path, Open: func() (io.ReadCloser, error) { return os.Open(path) }}
}

// Load reads the recording of a source, until the context ends.
func Load(ctx context.Context, src Source) (*Recording, error) {
	r, err := src.Open()
	if err != nil {
		return nil, openError(src.Name, err)
	}
	defer r.Close()
	if err := refuseDirectory(src.Name, r); err != nil {
		return nil, err
	}
	rec, err := Read(src.Name, &contextReader{ctx, r})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return rec, err
}

func refuseDirectory(name string, r io.Reader) error {
	if f, ok := r.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.IsDir() {
			return &InputError{File: name, Problem: "is a directory", Advice: "name the files in it, for instance with a shell pattern"}
		}
	}
	return nil
}

// contextReader stops reading when its context ends.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c *contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

func openError(name string, err error) error {
	e := &InputError{File: name, Problem: "cannot be opened: " + err.Error(), Err: err}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Problem, e.Advice = "no such file", "check the name"
	case errors.Is(err, fs.ErrPermission):
		e.Problem, e.Advice = "permission denied", "make the file readable"
	}
	return e
}

// Read loads a recording, JSON that may be compressed; name stands for it in
// errors. All errors are of type *[InputError].
func Read(name string, r io.Reader) (*Recording, error) {
	rec, err := read(r, limits{MaxBytes, maxValue})
	if err != nil {
		err.File = name
		return nil, err
	}
	return rec, nil
}

func read(r io.Reader, max limits) (*Recording, *InputError) {
	in, err := unpack.New(r, unpack.Ratio)
	if err != nil {
		return nil, readError(err)
	}
	defer in.Close()
	head, err := in.Peek(512)
	if err != nil && err != io.EOF {
		return nil, readError(err)
	}
	if len(head) == 0 && in.Compression == "" {
		return nil, &InputError{Problem: "the file is empty", Advice: adviceAgain}
	}
	if e := notRecording(head); e != nil {
		return nil, e
	}
	return decode(in, max)
}

// notRecording looks at the beginning of the content and names what it is, if
// it cannot be a JSON object.
func notRecording(head []byte) *InputError {
	text := bytes.TrimLeft(head, " \t\r\n")
	if len(text) > 0 && text[0] == '{' {
		return nil
	}
	what := "not JSON"
	for _, k := range []struct{ magic, name string }{
		{"\x89PNG", "a PNG image"},
		{"\x80", "a pickle (a memory snapshot?)"},
		{"PK\x03\x04", "a zip archive"},
		{"\x1f\x8b", "gzip-compressed twice"},
		{"\x7fELF", "a program"},
		{"[", "a JSON list, not an object"},
	} {
		if bytes.HasPrefix(text, []byte(k.magic)) {
			what = k.name
			break
		}
	}
	if len(text) == 0 {
		what = "empty inside"
	}
	return &InputError{Problem: "not a recording: the content is " + what, Advice: adviceOther}
}

// readError words an error of the file system or of decompression.
func readError(err error) *InputError {
	e := &InputError{Problem: "cannot be read: " + err.Error(), Err: err}
	var (
		big     *sizeError
		corrupt flate.CorruptInputError
	)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		e.Problem, e.Advice = "the file ends too early (truncated)", adviceAgain
	case errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader), errors.As(err, &corrupt):
		e.Problem, e.Advice = "the compressed data is damaged ("+err.Error()+")", adviceAgain
	case errors.As(err, &big):
		e.Problem, e.Advice = big.Error(), "record a shorter run"
	}
	return e
}
