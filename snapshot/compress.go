package snapshot

import (
	"context"
	"io"
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
