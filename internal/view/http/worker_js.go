package http

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"time"
)

// Header has the fields of a message. Their names are written as HTTP writes
// them: Content-Type.
type Header map[string][]string

// Get returns a field, empty if there is none.
func (h Header) Get(name string) string {
	if v := h[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// Set sets a field.
func (h Header) Set(name, value string) { h[name] = []string{value} }

// Request is a question.
type Request struct {
	Method        string
	URL           *url.URL
	Host          string
	Header        Header
	Body          io.ReadCloser
	ContentLength int64
	ctx           context.Context
}

// NewRequestWithContext makes a request for an address. The context is that of
// the answer.
func NewRequestWithContext(ctx context.Context, method, address string, body io.Reader) (*Request, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	return &Request{Method: method, URL: u, Header: Header{}, Body: io.NopCloser(body), ctx: ctx}, nil
}

// Context ends when nobody wants the answer any more.
func (r *Request) Context() context.Context { return r.ctx }

// ResponseWriter takes an answer.
type ResponseWriter interface {
	Header() Header
	Write([]byte) (int, error)
	WriteHeader(status int)
}

// MaxBytesError says that a body is too large.
type MaxBytesError struct{ Limit int64 }

func (e *MaxBytesError) Error() string {
	return fmt.Sprintf("the body is larger than %d bytes", e.Limit)
}

// MaxBytesReader reads a body up to a limit; then its error is a *[MaxBytesError].
func MaxBytesReader(_ ResponseWriter, body io.ReadCloser, limit int64) io.ReadCloser {
	return &maxBytes{body, limit, limit}
}

type maxBytes struct {
	io.ReadCloser
	limit, left int64
}

func (m *maxBytes) Read(p []byte) (int, error) {
	if int64(len(p)) > m.left+1 { // one more, to tell the end from the limit
		p = p[:m.left+1]
	}
	n, err := m.ReadCloser.Read(p)
	if int64(n) > m.left {
		return int(m.left), &MaxBytesError{m.limit}
	}
	m.left -= int64(n)
	return n, err
}

// ResponseController steers the writing of an answer.
type ResponseController struct{ w ResponseWriter }

// NewResponseController steers the writing to w.
func NewResponseController(w ResponseWriter) *ResponseController { return &ResponseController{w} }

// SetReadDeadline does nothing: a body is there before its request.
func (c *ResponseController) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing: the page takes an answer as it comes.
func (c *ResponseController) SetWriteDeadline(time.Time) error { return nil }

// Flush sends what was written.
func (c *ResponseController) Flush() error {
	if f, ok := c.w.(interface{ Flush() }); ok {
		f.Flush()
	}
	return nil
}
