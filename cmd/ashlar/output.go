package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/ashlar-mem/ashlar/internal/atomicfile"
)

// output is a file being written, compressed if its name says so.
type output struct {
	io.Writer
	file  *atomicfile.File
	close []func() error // from the outermost writer in
}

// createOutput begins a file. If the name ends in .gz or .zst it will be
// compressed.
func createOutput(ctx context.Context, path string) (*output, error) {
	file, err := atomicfile.Create(path)
	if err != nil {
		return nil, failure{err}
	}
	o := &output{file: file}
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

// complete ends writing, so that commit has only the name to give.
func (o *output) complete() error {
	for _, f := range append(o.close, o.file.Complete) {
		if err := f(); err != nil {
			return o.failed(err)
		}
	}
	o.close = nil
	return nil
}

// commit completes the file, if need be, and gives it its name.
func (o *output) commit() error {
	if err := o.complete(); err != nil {
		return err
	}
	if err := o.file.Commit(); err != nil {
		return o.failed(err)
	}
	return nil
}

// commitAll commits files that belong together: none has its name before all are
// complete, and who sees the first finds the others.
func commitAll(files []*output) error {
	for _, o := range files {
		if err := o.complete(); err != nil {
			return err
		}
	}
	for _, o := range slices.Backward(files) {
		if err := o.commit(); err != nil {
			return err
		}
	}
	return nil
}

// abort removes what has been written. It does nothing after commit.
func (o *output) abort() { o.file.Abort() }

// failed words an error met while writing. If it is the file's own, it says all.
func (o *output) failed(err error) error {
	var file *atomicfile.Error
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &file):
		err = file
	}
	return failure{err}
}

// sameFile reports whether two names are those of one file.
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
		p.update(int(100*done/total), 0)
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
	w.p.update(int(w.n>>20), 0)
	return n, err
}
