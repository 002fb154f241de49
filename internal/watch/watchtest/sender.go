package watchtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Sender is a job: what is not acknowledged is kept, and sent again.
type Sender struct {
	Session string
	Run     string
	Rank    int
	World   int // 0: not known
	// Change changes a sample before it is sent; may be nil.
	Change func(sample map[string]int64)
	// Snapshot is what is sent when a snapshot is asked for; nil: the job allows none.
	Snapshot []byte

	client http.Client
	said   bool
	seq    int64
	ring   []map[string]int64
}

// NewSender makes a sender to a unix socket.
func NewSender(socket, run string, rank int) *Sender {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	return &Sender{
		Session: fmt.Sprintf("%s-rank%05d", strings.ReplaceAll(run, ".", "-"), rank), Run: run, Rank: rank,
		client: http.Client{Transport: &http.Transport{DialContext: dial}, Timeout: 5 * time.Second},
	}
}

// Sample takes a sample.
func (s *Sender) Sample(now time.Time) {
	s.seq++
	n := s.seq
	noise := n * 2654435761 % (1 << 22) * 512
	sample := map[string]int64{
		"gpu": int64(s.Rank % 8), "seq": n, "time_us": now.UnixMicro(), "step": n * 2, "step_us": 480_000 + noise%5000, "allocated": 20<<30 + noise,
		"active": 20<<30 + noise, "reserved": 24 << 30, "requested": 20<<30 + noise - 4096, "inactive_split": 2<<30 - noise/2, "pinned": 1 << 30,
		"peak_allocated": 23 << 30, "peak_reserved": 24 << 30, "device_free": 50 << 30, "device_total": 80 << 30, "host_rss": 5<<30 + noise%(1<<20),
		"num_alloc_retries": n / 1000, "num_ooms": 0, "num_device_alloc": 300 + n/100, "num_device_free": 20,
	}
	if s.Change != nil {
		s.Change(sample)
	}
	s.ring = append(s.ring, sample)
}

// Send sends what is not acknowledged.
func (s *Sender) Send(ctx context.Context) error {
	if !s.said {
		if err := s.hello(ctx, nil); err != nil {
			return err
		}
	}
	var reply struct {
		Stored int64
		Ask    []struct{ ID, What string }
	}
	batch := s.ring[:min(len(s.ring), 200)]
	if err := s.post(ctx, "/v1/samples", map[string]any{"v": 1, "session": s.Session, "samples": batch}, &reply); err != nil {
		return err
	}
	for len(s.ring) > 0 && s.ring[0]["seq"] <= reply.Stored {
		s.ring = s.ring[1:]
	}
	for _, ask := range reply.Ask {
		query := url.Values{"session": {s.Session}, "id": {ask.ID}}
		if err := s.send(ctx, "/v1/snapshot?"+query.Encode(), s.Snapshot, nil); err != nil {
			return err
		}
	}
	return nil
}

// Resume goes on behind what the server has of the session, as if this were the
// same process.
func (s *Sender) Resume(ctx context.Context) error {
	var reply struct{ Stored int64 }
	err := s.hello(ctx, &reply)
	s.seq = max(s.seq, reply.Stored)
	return err
}

func (s *Sender) hello(ctx context.Context, reply any) error {
	allow := []string{}
	if s.Snapshot != nil {
		allow = append(allow, "snapshot")
	}
	err := s.post(ctx, "/v1/hello", map[string]any{
		"v": 1, "session": s.Session, "run": s.Run, "rank": s.Rank, "world": s.World, "host": "test", "pid": s.Rank + 1, "allow": allow,
		"devices": []any{map[string]any{"index": s.Rank % 8, "uuid": fmt.Sprintf("GPU-%d", s.Rank)}},
	}, reply)
	if err == nil {
		s.said = true
	}
	return err
}

// Flush sends until everything is acknowledged or the context ends.
func (s *Sender) Flush(ctx context.Context) error {
	for len(s.ring) > 0 {
		if err := s.Send(ctx); err != nil {
			select {
			case <-ctx.Done():
				return fmt.Errorf("%d samples are not stored: %w", len(s.ring), err)
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	return nil
}

// Taken is how many samples were taken.
func (s *Sender) Taken() int64 { return s.seq }

// Close ends the connection.
func (s *Sender) Close() { s.client.CloseIdleConnections() }

func (s *Sender) post(ctx context.Context, path string, document, reply any) error {
	body, err := json.Marshal(document)
	if err != nil {
		return err
	}
	return s.send(ctx, path, body, reply)
}

func (s *Sender) send(ctx context.Context, path string, body []byte, reply any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusNotFound {
		s.said = false
	}
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	if reply == nil {
		reply = &struct{}{}
	}
	return json.NewDecoder(answer.Body).Decode(reply)
}
