package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
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

// answers asks the address once. A service that answers with an error is not
// ready yet.
func (r *Ready) answers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, probeWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL, nil)
	if err != nil {
		return false
	}
	// No proxy stands between this program and one that it has started.
	transport := &http.Transport{DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	io.Copy(io.Discard, io.LimitReader(res.Body, 1<<20)) // lets the service finish its answer
	return res.StatusCode < http.StatusBadRequest
}

// wait returns a channel that is closed when the service is ready. Texts are
// seen by the output.
func (r *Ready) wait(ctx context.Context, text <-chan struct{}) <-chan struct{} {
	if r.URL == "" {
		return text
	}
	ready := make(chan struct{})
	go func() {
		for ctx.Err() == nil {
			if r.answers(ctx) {
				close(ready)
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(probeEvery):
			}
		}
	}()
	return ready
}

// notReady says what did not happen.
func (r *Ready) notReady(within time.Duration) string {
	if r.URL != "" {
		return fmt.Sprintf("%s did not answer within %v", r.URL, within)
	}
	return fmt.Sprintf("it did not print %q within %v; output that is buffered comes late", r.Text, within)
}
