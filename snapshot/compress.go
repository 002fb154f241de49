package snapshot

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

// source is the file itself: it counts, reports and can be stopped.
type source struct {
	ctx         context.Context
	r           io.Reader
	read, total int64
	progress    func(read, total int64)
}

func (s *source) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := s.r.Read(p)
	s.read += int64(n)
	if s.progress != nil {
		s.progress(s.read, s.total)
	}
	return n, err
}

// maxWindow is how much memory a zstd file may ask for, as much as zstd itself
// grants without being told.
const maxWindow = 128 << 20

// decompress returns the content of a file, and a function to call at the end.
func (f *File) decompress(s *source, limits Limits) (*bufio.Reader, func(), error) {
	raw := bufio.NewReaderSize(s, 64<<10)
	head, err := raw.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	var plain io.Reader
	stop := func() {}
	switch {
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		f.Compression = "gzip"
		plain, err = gzip.NewReader(raw)
	case bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")):
		f.Compression = "zstd"
		var d *zstd.Decoder
		d, err = zstd.NewReader(raw, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
		if err == nil {
			plain, stop = d, d.Close
		}
	default:
		return raw, stop, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("its %s data cannot be read: %w", f.Compression, err)
	}
	return bufio.NewReaderSize(&bombGuard{r: plain, source: s, limits: limits, compression: f.Compression}, 64<<10), stop, nil
}

// bombGuard stops a small file that decompresses to a huge one.
type bombGuard struct {
	r           io.Reader
	source      *source
	limits      Limits
	compression string
	out         int64
}

func (g *bombGuard) Read(p []byte) (int, error) {
	n, err := g.r.Read(p)
	g.out += int64(n)
	if g.out > minBomb && g.out/g.limits.Ratio > g.source.read {
		return 0, fmt.Errorf("a decompression bomb: %d bytes of %s have become %d already, more than %d times as many",
			g.source.read, g.compression, g.out, g.limits.Ratio)
	}
	switch {
	case err == nil, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return n, err
	}
	return n, fmt.Errorf("its %s data are damaged: %w", g.compression, err)
}
