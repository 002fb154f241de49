package watch

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// TestRateOfMany: what a job sends too often to matter is not kept, and the rate is that of the minute.
func TestRateOfMany(t *testing.T) {
	r := &rate{column(OOMs)}
	m := &moment{row: &Row{}, fresh: true, memory: map[expr]*history{}}
	at := int64(1_000_000_000)
	send := func(n int, gap int64) (got float64) {
		for range n {
			at += gap
			m.row.V[Time], m.row.V[OOMs] = at, at/1000 // a thousand a second
			got = r.eval(m)
		}
		return got
	}
	for _, x := range []struct {
		n   int
		gap int64
	}{{200_000, 1}, {1, 61_000_000}, {300, 1_000_000}, {100_000, 10_000}, {1, 3600_000_000}} {
		if got := send(x.n, x.gap); got < 999 || got > 1001 {
			t.Errorf("%d samples every %d us: %v a second", x.n, x.gap, got)
		}
		if n := len(m.memory[r].points); n > 2*ratePoints {
			t.Errorf("%d samples every %d us: %d points are kept", x.n, x.gap, n)
		}
	}
}

// TestLongHello: texts are cut, between characters, and what is long all the same is refused.
func TestLongHello(t *testing.T) {
	s := newTestServer(t, newTestHub(t, t.TempDir()), newClock(), "")
	long := "a\r\x1b[2J" + strings.Repeat("é", 5000)
	h := Hello{
		V: 1, Session: "session-1", Run: long, Host: long, Torch: long, Commit: long, Allow: []string{long},
		Tags: map[string]string{long: long}, Settings: map[string]string{"PYTORCH_CUDA_ALLOC_CONF": long}, Devices: []Device{{Name: long, UUID: long}},
	}
	if code, answer := call(t, s, "/v1/hello", h); code != http.StatusOK {
		t.Fatalf("%d %v", code, answer)
	}
	stored, err := s.store.hello(t.Context(), "session-1")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(stored)
	if len(text) > 6000 || len(stored.Settings["PYTORCH_CUDA_ALLOC_CONF"]) < maxSetting-2 {
		t.Errorf("%d bytes are stored: %s", len(text), text)
	}
	call(t, s, "/v1/samples", map[string]any{"v": 1, "session": "session-1", "samples": []any{map[string]any{"seq": 1, "time_us": 1, "gpu": 0, "allocated": 1}}})
	if metrics := metricsOf(t, s); !utf8.ValidString(metrics) || strings.ContainsAny(metrics, "\r\x1b\ufffd") || len(metrics) > 20_000 {
		t.Errorf("%d bytes: %.400q", len(metrics), metrics)
	}
	h.Settings = map[string]string{}
	for i := range 30 {
		h.Settings[fmt.Sprint(i)] = long
	}
	if code, answer := call(t, s, "/v1/hello", h); code != http.StatusBadRequest || !strings.Contains(fmt.Sprint(answer), "16 KiB") {
		t.Errorf("%d %v", code, answer)
	}
}

// TestUnknownSessions: whoever has not said hello leaves nothing behind.
func TestUnknownSessions(t *testing.T) {
	s := newTestServer(t, newTestHub(t, t.TempDir()), newClock(), "")
	for i := range 20 {
		id := fmt.Sprintf("unknown-%d", i)
		if code, _ := call(t, s, "/v1/samples", map[string]any{"v": 1, "session": id, "samples": []any{}}); code != http.StatusNotFound {
			t.Errorf("%s: %d", id, code)
		}
	}
	if len(s.loading) > 0 || len(s.sessions) > 0 {
		t.Errorf("%d are being read, %d known", len(s.loading), len(s.sessions))
	}
}

// TestMaxDiskOfSessions: at --max-disk sessions that do not live go, too, and alarms after them; those that live stay.
func TestMaxDiskOfSessions(t *testing.T) {
	c := newClock()
	s := newTestServer(t, newTestHub(t, t.TempDir()), c, "")
	for i := range 40 {
		id := fmt.Sprintf("old-session-%d", i)
		hello(t, s, id, i)
		call(t, s, "/v1/samples", batch(c, id, 1, 3))
	}
	for i := range 3 {
		if err := put(t.Context(), s.store.alarms, fmt.Sprint("alarm-", i), Alarm{}); err != nil {
			t.Fatal(err)
		}
	}
	c.add(2 * recent)
	hello(t, s, testSession, 0)
	call(t, s, "/v1/samples", batch(c, testSession, 1, 3))
	s.opts.MaxDisk = 1
	if err := s.shrink(t.Context()); err != nil {
		t.Fatal(err)
	}
	ids, err := s.store.sessions.Subjects(t.Context())
	if err != nil || len(ids) != 1 || ids[0] != testSession || len(s.sessions) != 1 {
		t.Errorf("%v are stored, %d known, %v", ids, len(s.sessions), err)
	}
	for _, st := range []struct {
		name string
		want uint64
	}{{"journal", 1}, {"alarms", 0}} {
		stream := s.store.journal
		if st.name == "alarms" {
			stream = s.store.alarms
		}
		if state, err := stream.State(t.Context()); err != nil || state.Messages != st.want {
			t.Errorf("%s: %+v, %v", st.name, state, err)
		}
	}
	hello(t, s, "old-session-1", 1) // one that comes back
	if code, _ := call(t, s, "/v1/samples", batch(c, "old-session-1", 4, 6)); code != http.StatusOK {
		t.Error(code)
	}
}

// TestMostSessions: in memory are those that were seen last.
func TestMostSessions(t *testing.T) {
	c := newClock()
	s := newTestServer(t, newTestHub(t, t.TempDir()), c, "")
	for i := range mostSessions + 10 {
		id := fmt.Sprintf("session-%05d", i)
		s.sessions[id] = &session{id: id, seen: c.now().Add(time.Duration(i))}
	}
	s.forget(c.now())
	if len(s.sessions) != mostSessions || s.sessions["session-00009"] != nil || s.sessions["session-00010"] == nil {
		t.Errorf("%d sessions", len(s.sessions))
	}
}

// TestStalledBody: who sends nothing more is not waited for.
func TestStalledBody(t *testing.T) {
	s := newTestServer(t, newTestHub(t, t.TempDir()), newClock(), "")
	var end time.Time
	at := time.Now()
	p := &paced{http.NoBody, func(t time.Time) error { end = t; return nil }, at.Add(requestTime), at}
	p.Read(nil) // it sets the deadline, and at the end of the body none
	if !end.IsZero() {
		t.Errorf("after the body there is a deadline: %v", end)
	}
	stalls := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := pace(w, r.Body).(*paced)
		body.end = time.Now().Add(50 * time.Millisecond)
		r.Body = body
		s.Handler().ServeHTTP(w, r)
	}))
	defer stalls.Close()
	c, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", stalls.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "POST /v1/hello HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nx")
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || answer.StatusCode != http.StatusBadRequest {
		t.Errorf("%+v, %v", answer, err)
	}
}
