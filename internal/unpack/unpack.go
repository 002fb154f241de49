package unpack

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Ratio is how many times larger than itself a file may become, unless a caller
// knows better. No real file comes near.
const Ratio = 500

// minBomb is the decompressed size from which the ratio is looked at.
const minBomb = 64 << 20

// maxWindow is how much memory a zstd file may ask for, as much as zstd itself
// grants without being told.
const maxWindow = 128 << 20

// The beginnings of compressed files.
var gzipMagic, zstdMagic = []byte("\x1f\x8b"), []byte("\x28\xb5\x2f\xfd")

// Compression returns how a file is compressed that begins so: "gzip", "zstd" or
// "" if it is not.
func Compression(begin []byte) string {
	switch {
	case bytes.HasPrefix(begin, gzipMagic):
		return "gzip"
	case bytes.HasPrefix(begin, zstdMagic):
		return "zstd"
	}
	return ""
}

// Reader reads the content of a file.
type Reader struct {
	*bufio.Reader
	Compression string // "gzip", "zstd" or ""

	stop func()
}

// New returns a reader of the content of a file, whether it is compressed or
// not. It fails when the content becomes more than ratio times as large as the
// file; 0 stands for [Ratio].
func New(from io.Reader, ratio int64) (*Reader, error) {
	if ratio <= 0 {
		ratio = Ratio
	}
	source := &counter{r: from}
	raw := bufio.NewReaderSize(source, 64<<10)
	begin, err := raw.Peek(len(zstdMagic))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	r := &Reader{Reader: raw, Compression: Compression(begin), stop: func() {}}
	var plain io.Reader
	switch r.Compression {
	case "":
		return r, nil
	case "gzip":
		plain, err = gzip.NewReader(raw)
	default:
		var d *zstd.Decoder
		d, err = zstd.NewReader(raw, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
		if err == nil {
			plain, r.stop = d, d.Close
		}
	}
	if err != nil {
		return nil, fmt.Errorf("its %s data cannot be read: %w", r.Compression, err)
	}
	r.Reader = bufio.NewReaderSize(&guard{r: plain, source: source, ratio: ratio, compression: r.Compression}, 64<<10)
	return r, nil
}

// Close ends what the reader has started. The file stays open.
func (r *Reader) Close() { r.stop() }

// counter counts what is read.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// BombError says that a small file decompresses to a huge one.
type BombError struct {
	Compression string
	In, Out     int64 // bytes so far
	Ratio       int64
}

func (e *BombError) Error() string {
	return fmt.Sprintf("a decompression bomb: %d bytes of %s have become %d already, more than %d times as many", e.In, e.Compression, e.Out, e.Ratio)
}

// guard stops a small file that decompresses to a huge one.
type guard struct {
	r           io.Reader
	source      *counter
	compression string
	ratio, out  int64
}

func (g *guard) Read(p []byte) (int, error) {
	n, err := g.r.Read(p)
	g.out += int64(n)
	if g.out > minBomb && g.out/g.ratio > g.source.n {
		return 0, &BombError{g.compression, g.source.n, g.out, g.ratio}
	}
	switch {
	case err == nil, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return n, err
	}
	return n, fmt.Errorf("its %s data are damaged: %w", g.compression, err)
}
