package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// output is a file being written. It appears under its name only when it is
// complete: until then it is a temporary file beside it.
type output struct {
	io.Writer
	path    string
	file    *os.File
	close   []func() error // from the outermost writer in
	written int64          // bytes of the file, once it is complete
}

// createOutput begins a file. If the name ends in .gz or .zst it will be
// compressed.
func createOutput(ctx context.Context, path string) (*output, error) {
	target, err := outputTarget(path)
	if err != nil {
		return nil, failure{err}
	}
	file, err := os.CreateTemp(filepath.Dir(target), ".ashlar-*.part")
	if err != nil {
		return nil, failure{fmt.Errorf("%s cannot be written: %w", path, withoutPath(err))}
	}
	o := &output{path: target, file: file}
	buffered := bufio.NewWriterSize(&contextWriter{ctx, file}, 1<<18)
	o.close = []func() error{buffered.Flush}
	o.Writer = buffered
	switch filepath.Ext(path) {
	case ".gz":
		z := gzip.NewWriter(buffered)
		o.Writer, o.close = z, append([]func() error{z.Close}, o.close...)
	case ".zst":
		z, err := zstd.NewWriter(buffered, zstd.WithEncoderConcurrency(1))
		if err != nil {
			o.abort()
			return nil, failure{err}
		}
		o.Writer, o.close = z, append([]func() error{z.Close}, o.close...)
	}
	return o, nil
}

// outputTarget is where the file goes: a link is followed, and what is no
// ordinary file is not replaced.
func outputTarget(path string) (string, error) {
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return path, nil
	case err != nil:
		return "", fmt.Errorf("%s cannot be written: %w", path, withoutPath(err))
	case info.IsDir():
		return "", fmt.Errorf("%s is a directory: name a file in it", path)
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is no ordinary file: name one to be written", path)
	}
	return filepath.EvalSymlinks(path)
}

// commit completes the file and gives it its name.
func (o *output) commit() error {
	for _, f := range o.close {
		if err := f(); err != nil {
			return o.failed(err)
		}
	}
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(o.path); err == nil {
		mode = info.Mode().Perm()
	}
	if err := o.file.Chmod(mode); err != nil {
		return o.failed(err)
	}
	if info, err := o.file.Stat(); err == nil {
		o.written = info.Size()
	}
	if err := o.file.Close(); err != nil {
		return o.failed(err)
	}
	if err := os.Rename(o.file.Name(), o.path); err != nil {
		return o.failed(err)
	}
	o.file = nil
	return nil
}

// abort removes what has been written. It does nothing after commit.
func (o *output) abort() {
	if o.file != nil {
		o.file.Close() // possibly closed already
		os.Remove(o.file.Name())
	}
}

// failed words an error met while writing.
func (o *output) failed(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &path), errors.As(err, &link):
		err = fmt.Errorf("%s cannot be written: %w", o.path, withoutPath(err))
	}
	return failure{err}
}

// withoutPath leaves out the name of the temporary file.
func withoutPath(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}

// sameFile tells whether two names are those of one file.
func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// withoutCompression cuts .gz or .zst off a name.
func withoutCompression(path string) (string, bool) {
	for _, end := range []string{".gz", ".zst"} {
		if s, ok := strings.CutSuffix(path, end); ok {
			return s, true
		}
	}
	return path, false
}

// contextWriter stops writing when its context ends.
type contextWriter struct {
	ctx context.Context
	w   io.Writer
}

func (c *contextWriter) Write(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.w.Write(p)
}

// percent is a progress line for work of unknown units.
type percent struct{ *progress }

func startPercent(std stdio, what string) percent {
	return percent{startProgress(std, 0, "percent of "+what)}
}

// set says how much of the work is done.
func (p percent) set(done, total int64) {
	if total > 0 {
		p.at(int(100*done/total), 0)
	}
}

// watchedWriter shows how much has been written.
type watchedWriter struct {
	w io.Writer
	p *progress
	n int64
}

func (w *watchedWriter) Write(b []byte) (int, error) {
	n, err := w.w.Write(b)
	w.n += int64(n)
	w.p.at(int(w.n>>20), 0)
	return n, err
}
