package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Ready is how a service shows that it is ready: an address that answers, or a
// text that it prints.
type Ready struct {
	URL  string
	Text string
}

// ParseReady reads an address (http://, https://) or a text.
func ParseReady(s string) (*Ready, error) {
	if s == "" {
		return nil, errors.New("give a URL or a text that the command prints")
	}
	if !strings.HasPrefix(s, "http://") && !strings.HasPrefix(s, "https://") {
		return &Ready{Text: s}, nil
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("%q is no URL: give one such as http://127.0.0.1:8000/health", s)
	}
	return &Ready{URL: s}, nil
}

// probeEvery is how often an address is asked, and probeWithin how long it may
// take to answer.
const (
	probeEvery  = 100 * time.Millisecond
	probeWithin = 2 * time.Second
)

// ask asks the address once. Whoever answers with less than a 5xx is ready: what
// there is at the address is the service's matter, but with a 5xx it says itself
// that it cannot serve yet. The error says what was wrong, as far as it is known.
func (r *Ready) ask(ctx context.Context) (answers bool, why error) {
	ctx, cancel := context.WithTimeout(ctx, probeWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL, nil)
	if err != nil {
		return false, err
	}
	// No proxy stands between this program and one that it has started.
	transport := &http.Transport{DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(req)
	if err != nil {
		return false, reason(err)
	}
	defer res.Body.Close()
	io.Copy(io.Discard, io.LimitReader(res.Body, 1<<20)) // lets the service finish its answer
	if res.StatusCode >= http.StatusInternalServerError {
		return false, statusError(res.StatusCode)
	}
	return true, nil
}

// statusError is an answer that the service is not ready.
type statusError int

func (s statusError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("status %d %s", int(s), http.StatusText(int(s))))
}

// reason leaves out of an error what is known: the address, and that there was no
// answer in time.
func reason(err error) error {
	var op *net.OpError
	var errno syscall.Errno
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return nil
	case errors.As(err, &errno):
		return errno
	case errors.As(err, &op):
		return op.Err
	}
	return err
}

// waiting is for a service to be ready.
type waiting struct {
	sign  *Ready
	ready <-chan struct{} // closed when it is

	mu  sync.Mutex
	why error // what was wrong the last time the address was asked
}

// wait begins to wait. Texts are seen by the output.
func (r *Ready) wait(ctx context.Context, text <-chan struct{}) *waiting {
	if r.URL == "" {
		return &waiting{sign: r, ready: text}
	}
	ready := make(chan struct{})
	w := &waiting{sign: r, ready: ready}
	go func() {
		for ctx.Err() == nil {
			ok, why := r.ask(ctx)
			if ok {
				close(ready)
				return
			}
			w.mu.Lock()
			if why != nil {
				w.why = why
			}
			w.mu.Unlock()
			select {
			case <-ctx.Done():
			case <-time.After(probeEvery):
			}
		}
	}()
	return w
}

// notReady says what did not happen.
func (w *waiting) notReady(within time.Duration) string {
	if w.sign.URL == "" {
		return fmt.Sprintf("it did not print %q within %v; output that is buffered comes late", w.sign.Text, within)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if status, ok := w.why.(statusError); ok {
		return fmt.Sprintf("it was not ready within %v: %s answers with %v", within, w.sign.URL, status)
	}
	text := fmt.Sprintf("%s did not answer within %v", w.sign.URL, within)
	if w.why != nil {
		text += ": " + w.why.Error()
	}
	return text
}

// beforeOrWhen is when a service has ended that seemed not to be ready: what it
// printed last may be seen a moment later.
func (w *waiting) beforeOrWhen() string {
	select {
	case <-w.ready:
		return "as soon as"
	case <-time.After(moment):
		return "before"
	}
}
