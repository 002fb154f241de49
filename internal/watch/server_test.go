package watch

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hub"
	"github.com/ashlar-mem/ashlar/internal/unpack"
)

// clock is a clock that goes when it is told to.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: time.Unix(1_800_000_000, 0)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

func mustRules(t *testing.T, text string) []*Rule {
	t.Helper()
	rules, err := ParseRules(text)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

func newTestHub(t *testing.T, dir string) *hub.Hub {
	t.Helper()
	h, err := hub.Open(t.Context(), hub.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

func newTestServer(t *testing.T, h *hub.Hub, c *clock, rules string) *Server {
	t.Helper()
	s, err := NewServer(t.Context(), h, Options{Keep: 7 * 24 * time.Hour, MaxDisk: 1 << 30, MaxSnapshot: 1000, Rules: mustRules(t, rules), Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// call posts a document, or a text as it is, and returns the answer.
func call(t *testing.T, s *Server, path string, body any) (int, map[string]any) {
	t.Helper()
	text, ok := body.(string)
	if !ok {
		data, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		text = string(data)
	}
	r := httptest.NewRequest("POST", path, strings.NewReader(text))
	r.Host = "localhost"
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	var answer map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatalf("%s: %d %s", path, w.Code, w.Body)
	}
	return w.Code, answer
}

const testSession = "session-1"

// testSnapshot is a snapshot as JSON.
const testSnapshot = `{"segments": [], "device_traces": [[]]}`

func hello(t *testing.T, s *Server, session string, rank int) {
	t.Helper()
	code, answer := call(t, s, "/v1/hello", Hello{
		V: 1, Session: session, Run: "job", Rank: rank, Host: "machine", PID: 7, Allow: []string{"snapshot"},
		Devices: []Device{{Index: 0, UUID: "GPU-1"}},
	})
	if code != http.StatusOK {
		t.Fatalf("hello: %d %v", code, answer)
	}
}

// batch is samples with the given sequence numbers, a second apart.
func batch(c *clock, session string, from, to int) map[string]any {
	var list []map[string]int64
	for i := from; i <= to; i++ {
		list = append(list, sampleOf(c, i))
	}
	return map[string]any{"v": 1, "session": session, "samples": list}
}

func sampleOf(c *clock, i int) map[string]int64 {
	n := int64(i)
	return map[string]int64{
		"gpu": 0, "seq": n, "time_us": c.now().UnixMicro() + n, "step": n / 2, "step_us": 500_000, "allocated": 1<<30 + n*4096, "reserved": 2 << 30,
		"inactive_split": 100<<20 + n%7*512, "device_free": 70 << 30, "device_total": 80 << 30, "num_ooms": 0, "num_alloc_retries": 0,
	}
}

// seqs lists the sequence numbers that are stored of a session.
func seqs(t *testing.T, st *store, session string) []int64 {
	t.Helper()
	spans, err := st.history(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	var all []int64
	for i := range spans {
		all = append(all, spans[i].V[Seq])
	}
	return all
}

// checkSeqs checks that 1 to n are stored, each once.
func checkSeqs(t *testing.T, st *store, session string, n int) {
	t.Helper()
	got := seqs(t, st, session)
	if len(got) != n {
		t.Errorf("%s: %d samples are stored, want %d", session, len(got), n)
		return
	}
	for i, s := range got {
		if s != int64(i+1) {
			t.Errorf("%s: sample %d has seq %d", session, i, s)
			return
		}
	}
}

// Samples that are sent again, in other groups, or to a server that was started
// again, are stored once.
func TestOnce(t *testing.T) {
	c, h := newClock(), newTestHub(t, t.TempDir())
	s := newTestServer(t, h, c, DefaultRules)
	hello(t, s, testSession, 0)
	stored := func(from, to, want int) {
		t.Helper()
		code, answer := call(t, s, "/v1/samples", batch(c, testSession, from, to))
		if asks, ok := answer["ask"].([]any); code != http.StatusOK || answer["stored"] != float64(want) || !ok || len(asks) > 0 {
			t.Fatalf("%d to %d: %d %v, want %d", from, to, code, answer, want)
		}
	}
	stored(1, 10, 10)
	stored(1, 10, 10)
	stored(5, 15, 15)
	stored(16, 130, 130) // a block
	s = newTestServer(t, h, c, DefaultRules)
	stored(100, 140, 140)
	hello(t, s, testSession, 0)
	stored(141, 141, 141)
	checkSeqs(t, s.store, testSession, 141)
}

// A process that was killed between writing a block and emptying the journal.
func TestHalfPacked(t *testing.T) {
	c, h := newClock(), newTestHub(t, t.TempDir())
	s := newTestServer(t, h, c, "")
	hello(t, s, testSession, 0)
	call(t, s, "/v1/samples", batch(c, testSession, 1, 50))
	one, err := s.session(t.Context(), testSession)
	if err != nil {
		t.Fatal(err)
	}
	var spans []span
	for _, r := range one.tail.rows {
		spans = append(spans, single(r))
	}
	if _, err := s.store.levels[0].Append(t.Context(), testSession, encode(spans, false), 0); err != nil {
		t.Fatal(err)
	}
	s = newTestServer(t, h, c, "")
	call(t, s, "/v1/samples", batch(c, testSession, 1, 60))
	checkSeqs(t, s.store, testSession, 60)
	call(t, s, "/v1/samples", batch(c, testSession, 61, 300))
	checkSeqs(t, s.store, testSession, 300)
}

func TestBounds(t *testing.T) {
	c := newClock()
	s := newTestServer(t, newTestHub(t, t.TempDir()), c, "")
	hello(t, s, testSession, 0)
	one := func(change map[string]any) map[string]any {
		sample := map[string]any{}
		for k, v := range sampleOf(c, 1) {
			sample[k] = v
		}
		for k, v := range change {
			sample[k] = v
		}
		return map[string]any{"v": 1, "session": testSession, "samples": []any{sample}}
	}
	for _, tt := range []struct {
		name string
		body any
		code int
		note string
	}{
		{"no JSON", "{", 400, "1 requests were refused"},
		{"wrong types", `{"v":1,"session":"session-1","samples":{"seq":"x"}}`, 400, "2 requests were refused"},
		{"a million zeros", `{"v":` + strings.Repeat(" ", maxBody) + `1}`, 413, "3 requests were refused"},
		{"no session", `{"v":1,"session":"a.b.*","samples":[]}`, 400, "4 requests were refused"},
		{"negative", one(map[string]any{"allocated": -1}), 200, "1 samples were refused"},
		{"huge", one(map[string]any{"allocated": 1e300}), 200, "2 samples were refused"},
		{"a fraction", one(map[string]any{"allocated": 0.5}), 200, "3 samples were refused"},
		{"no time", one(map[string]any{"time_us": nil}), 200, "4 samples were refused"},
		{"a later version", one(map[string]any{"seq": 10, "wonder": 3}), 200, "1 samples have fields"},
		{"the future", one(map[string]any{"seq": 11, "time_us": int64(maxNumber)}), 200, "1 samples had a time"},
		{"the past", one(map[string]any{"seq": 12, "time_us": 0}), 200, "2 samples had a time"},
		{"null", one(map[string]any{"seq": 13, "limit": nil}), 200, ""},
	} {
		code, answer := call(t, s, "/v1/samples", tt.body)
		if notes := strings.Join(s.Status().Notes, "\n"); code != tt.code || !strings.Contains(notes, tt.note) {
			t.Errorf("%s: %d %v, want %d\n%s", tt.name, code, answer, tt.code, notes)
		}
	}
	if got := fmt.Sprint(seqs(t, s.store, testSession)); got != "[10 11 12 13]" {
		t.Errorf("stored: %s", got)
	}
	code, _ := call(t, s, "/v1/samples", batch(c, "unknown-session", 1, 1))
	if code != http.StatusNotFound {
		t.Errorf("no hello: %d", code)
	}
	r := httptest.NewRequest("POST", "/v1/hello", nil)
	r.Host = "evil.example"
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	if w.Code != http.StatusForbidden {
		t.Errorf("another Host: %d", w.Code)
	}
}

// An alarm, the snapshot that the job is asked for, and what becomes of it.
func TestAsk(t *testing.T) {
	c, h := newClock(), newTestHub(t, t.TempDir())
	const rules = "oom: num_ooms > 0 clear 0 -> log, snapshot, empty_cache, run cat >&2; exit 3"
	s := newTestServer(t, h, c, rules)
	hello(t, s, testSession, 0)
	bad := sampleOf(c, 1)
	bad["num_ooms"] = 1
	body := map[string]any{"v": 1, "session": testSession, "samples": []any{bad}}
	call(t, s, "/v1/samples", body)
	s.work.Wait()
	_, answer := call(t, s, "/v1/samples", map[string]any{"v": 1, "session": testSession, "samples": []any{}})
	asks, _ := answer["ask"].([]any)
	if len(asks) != 1 {
		t.Fatalf("asked: %v", answer)
	}
	id := asks[0].(map[string]any)["id"].(string)
	post := func(body string) int {
		r := httptest.NewRequest("POST", "/v1/snapshot?session="+testSession+"&id="+id, strings.NewReader(body))
		r.Host = "localhost"
		r.ContentLength = -1 // as chunks
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		return w.Code
	}
	// What is no snapshot leaves the ask as it is.
	for _, tt := range []struct {
		body string
		code int
	}{
		{"", 400},
		{strings.Repeat("\x00", 1000), 400},
		{"a text", 400},
		{"PK\x03\x04", 400},
		{`{"ops": []}`, 400},
		{"\x80\x04}.", 400},
		{testSnapshot, 200},
		{testSnapshot, 404},
		{strings.Repeat("\x00", 1001), 404},
	} {
		if code := post(tt.body); code != tt.code {
			t.Errorf("%.20q: %d, want %d", tt.body, code, tt.code)
		}
	}
	a := newTestServer(t, h, c, rules).Status().Alarms
	if len(a) != 1 || a[0].Snapshot == nil || a[0].ClearedUS != nil {
		t.Fatalf("alarms: %+v", a)
	}
	for i, want := range []string{"logged", "stored as session-1", "left out: the job does not allow it", `exit status 3: {"id":"session-1`} {
		if got := a[0].Actions[i].Result; !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", a[0].Actions[i].Action, got, want)
		}
	}
	if _, err := s.Snapshot(t.Context(), *a[0].Snapshot); err != nil {
		t.Fatal(err)
	}

	// It is cleared, and raised again too soon for another snapshot.
	call(t, s, "/v1/samples", batch(c, testSession, 2, 2))
	bad["seq"], bad["time_us"] = 3, bad["time_us"]+3
	call(t, s, "/v1/samples", body)
	s.work.Wait()
	list := s.Status().Alarms
	if len(list) != 2 || list[0].ClearedUS == nil || list[1].Actions[1].Result != "left out: the last one was 0 s ago" {
		t.Errorf("alarms: %+v", list)
	}
}

// What a job was asked for and has not done, a server that was started again asks for, too; once.
func TestAskAfterRestart(t *testing.T) {
	c, h := newClock(), newTestHub(t, t.TempDir())
	const rules = "oom: num_ooms > 0 clear 0 -> log, snapshot, empty_cache"
	s := newTestServer(t, h, c, rules)
	hello(t, s, testSession, 0)
	bad := sampleOf(c, 1)
	bad["num_ooms"] = 1
	call(t, s, "/v1/samples", map[string]any{"v": 1, "session": testSession, "samples": []any{bad}})
	asked := func() (ids []string) {
		t.Helper()
		_, answer := call(t, s, "/v1/samples", map[string]any{"v": 1, "session": testSession, "samples": []any{}})
		list, _ := answer["ask"].([]any)
		for _, a := range list {
			ids = append(ids, a.(map[string]any)["id"].(string))
		}
		return ids
	}
	before := asked()
	for range 2 {
		s = newTestServer(t, h, c, rules)
		for range 2 {
			if again := asked(); len(before) != 1 || len(again) != 1 || again[0] != before[0] {
				t.Fatalf("asked for %v, then for %v", before, again)
			}
		}
	}
	if code, answer := call(t, s, "/v1/result", result{V: 1, Session: testSession, ID: before[0], Result: "no room"}); code != http.StatusOK {
		t.Fatalf("%d %v", code, answer)
	}
	s = newTestServer(t, h, c, rules)
	if again := asked(); len(again) != 0 {
		t.Errorf("asked for %v although it is done", again)
	}
}

// A text in the place of a number refuses its sample alone, and one of a later version is left out.
func TestTextInSample(t *testing.T) {
	c, h := newClock(), newTestHub(t, t.TempDir())
	s := newTestServer(t, h, c, DefaultRules)
	hello(t, s, testSession, 0)
	at := c.now().UnixMicro()
	body := fmt.Sprintf(`{"v": 1, "session": %q, "samples": [{"seq": 1, "time_us": %[2]d, "gpu": 0}, {"seq": 2, "time_us": %[2]d, "allocated": "many"}, 5, "x", [],
		{"seq": 3, "time_us": %[2]d, "gpu": 0, "words": "of later", "more": {"a": [1]}}, {"seq": "4", "time_us": %[2]d}, {"seq": 5, "time_us": %[2]d, "gpu": "0"}, {"seq": 6, "time_us": %[2]d}]}`, testSession, at)
	if code, answer := call(t, s, "/v1/samples", body); code != http.StatusOK || answer["stored"] != 6.0 {
		t.Fatalf("%d %v", code, answer)
	}
	if got := fmt.Sprint(seqs(t, s.store, testSession)); got != "[1 3 6]" {
		t.Errorf("stored %s", got)
	}
	if s.counts.refused != 6 || s.counts.later != 1 || s.counts.requests != 0 {
		t.Errorf("counts: %+v", s.counts)
	}
}

// What a job does not do is not under way for ever.
func TestNoAnswer(t *testing.T) {
	for _, end := range []bool{false, true} {
		c, h := newClock(), newTestHub(t, t.TempDir())
		s := newTestServer(t, h, c, "a: allocated > 1 -> snapshot")
		hello(t, s, testSession, 0)
		call(t, s, "/v1/samples", batch(c, testSession, 1, 1))
		want := "the job ended before it was done"
		if !end {
			want = "the job did not do it within 10m0s"
			c.add(askTime + time.Second)
		}
		call(t, s, "/v1/samples", map[string]any{"v": 1, "session": testSession, "samples": []any{}, "end": end})
		a := newTestServer(t, h, c, "").Status().Alarms
		if len(a) != 1 || a[0].Actions[0].Result != want {
			t.Errorf("%+v, want %s", a, want)
		}
	}
}

// Snapshots of jobs are known by their beginnings, compressed or not.
func TestCheckHead(t *testing.T) {
	files, err := filepath.Glob("../../testdata/fresh/*.pickle.gz")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		packed, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		plain, err := unpack.New(bytes.NewReader(packed), 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, body := range []io.Reader{bytes.NewReader(packed), plain} {
			if err := checkHead(t.Context(), bufio.NewReaderSize(body, headBytes)); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
		plain.Close()
	}
}

// A snapshot that is too large: a sender that reads no answer before it has sent all
// gets it, whether it says the length or not, and the alarm says what became of it.
func TestLargeSnapshot(t *testing.T) {
	for _, chunked := range []bool{false, true} {
		c, h := newClock(), newTestHub(t, t.TempDir())
		s := newTestServer(t, h, c, "a: allocated > 1 -> snapshot")
		hello(t, s, testSession, 0)
		call(t, s, "/v1/samples", batch(c, testSession, 1, 1))
		id := s.Status().Alarms[0].ID + "/0"
		srv := httptest.NewServer(s.Handler())
		defer srv.Close()
		conn, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		const length = 16 << 20
		body := make([]byte, length)
		head := fmt.Sprintf("POST /v1/snapshot?session=%s&id=%s HTTP/1.1\r\nHost: localhost\r\n", testSession, url.QueryEscape(id))
		message := head + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", length, body)
		if chunked {
			message = head + fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", length, body)
		}
		if _, err := io.WriteString(conn, message); err != nil {
			t.Errorf("chunked %v: %v", chunked, err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || answer.StatusCode != http.StatusRequestEntityTooLarge {
			t.Fatalf("chunked %v: %v %v", chunked, answer, err)
		}
		_, reply := call(t, s, "/v1/samples", map[string]any{"v": 1, "session": testSession, "samples": []any{}})
		if asks := reply["ask"].([]any); len(asks) != 0 {
			t.Errorf("it is asked for again: %v", asks)
		}
		a := newTestServer(t, h, c, "").Status().Alarms[0]
		if want := "left out: the snapshot is larger than --max-snapshot (1000 B)"; a.Actions[0].Result != want || a.Snapshot != nil {
			t.Errorf("stored: %+v, want %s", a, want)
		}
	}
}

func TestSilence(t *testing.T) {
	c, h := newClock(), newTestHub(t, t.TempDir())
	s := newTestServer(t, h, c, "silence: silent() > 60s clear 10s -> log")
	for _, session := range []string{"session-1", "session-2"} {
		hello(t, s, session, 0)
		call(t, s, "/v1/samples", batch(c, session, 1, 1))
	}
	call(t, s, "/v1/samples", map[string]any{"v": 1, "session": "session-2", "samples": []any{}, "end": true})
	c.add(2 * time.Minute)
	s.act(t.Context(), s.engine.tick(c.now()))
	if a := s.Status().Alarms; len(a) != 1 || a[0].Session != "session-1" {
		t.Fatalf("alarms: %+v", a)
	}
	for _, within := range []time.Duration{recent, time.Second} { // it is read at once, or with the next sample
		s = newTestServer(t, h, c, "silence: silent() > 60s clear 10s -> log")
		c.add(time.Minute)
		s.Load(t.Context(), within)
		s.act(t.Context(), s.engine.tick(c.now()))
		if a := s.Status().Alarms; len(a) != 1 || a[0].ClearedUS != nil {
			t.Errorf("after a restart: %+v", a)
		}
	}
	call(t, s, "/v1/samples", batch(c, "session-1", 2, 2))
	if a := s.Status().Alarms; len(a) != 1 || a[0].ClearedUS == nil {
		t.Errorf("after a sample: %+v", a)
	}
}

// A server that was away gives the jobs their time again before it calls them silent.
func TestSilenceAfterRestart(t *testing.T) {
	const rules = "silence: silent() > 60s clear 10s -> log\nback: silent() < 5 clear 10 -> log"
	c, h := newClock(), newTestHub(t, t.TempDir())
	s := newTestServer(t, h, c, rules)
	for _, session := range []string{"session-1", "session-2"} {
		hello(t, s, session, 0)
		call(t, s, "/v1/samples", batch(c, session, 1, 1))
	}
	c.add(10 * time.Minute)
	s = newTestServer(t, h, c, rules)
	s.Load(t.Context(), recent)
	names := func() (names []string) {
		s.act(t.Context(), s.engine.tick(c.now()))
		for _, a := range s.Status().Alarms {
			if a.ClearedUS == nil {
				names = append(names, a.Name+" "+a.Session)
			}
		}
		slices.Sort(names)
		return names
	}
	if got := names(); len(got) != 0 {
		t.Fatalf("at once: %q", got)
	}
	c.add(time.Minute)
	call(t, s, "/v1/samples", batch(c, "session-1", 2, 2))
	names()
	c.add(time.Second)
	if got := strings.Join(names(), ", "); got != "back session-1, silence session-2" {
		t.Errorf("a minute later: %s", got)
	}
}

// What a server stored and could not evaluate any more is evaluated by the next one:
// alarms are the same as if it had gone on, whoever asks first.
func TestAlarmsAfterRestart(t *testing.T) {
	const rules = "a: num_ooms > 5 clear 2 -> log"
	for _, tt := range []struct {
		name                string
		seen, missed, later []int64 // of num_ooms: by the first server, before it was killed, after that
		raised, cleared     int     // alarms
	}{
		{"past the bound", nil, []int64{9}, nil, 1, 0},
		{"a hold", []int64{1}, []int64{9, 4}, nil, 1, 0},
		{"still so", []int64{9}, []int64{9}, []int64{9}, 1, 0},
		{"cleared unseen", []int64{9}, []int64{1}, nil, 1, 1},
		{"cleared at once", nil, []int64{9}, []int64{1}, 1, 1},
		{"over already", nil, []int64{9, 1}, nil, 0, 0},
		{"again", []int64{9, 1}, []int64{9}, []int64{9}, 2, 1},
		{"nothing new", []int64{9, 1, 9}, nil, []int64{4}, 2, 1},
		{"once is enough", []int64{9, 1}, nil, []int64{1}, 1, 1},
	} {
		for _, first := range []string{"tick", "sample"} {
			t.Run(tt.name+", "+first, func(t *testing.T) {
				c, h := newClock(), newTestHub(t, t.TempDir())
				seq := 0
				send := func(s *Server, ooms []int64) {
					for _, n := range ooms {
						seq++
						c.add(time.Second)
						one := sampleOf(c, seq)
						one["num_ooms"] = n
						if code, answer := call(t, s, "/v1/samples", map[string]any{"v": 1, "session": testSession, "samples": []any{one}}); code != 200 {
							t.Fatalf("%d %v", code, answer)
						}
					}
				}
				s := newTestServer(t, h, c, rules)
				hello(t, s, testSession, 0)
				send(s, tt.seen)
				blind := newTestServer(t, h, c, "") // it stores, and is killed before it notes alarms
				send(blind, tt.missed)
				for range 2 {
					s = newTestServer(t, h, c, rules)
					if first == "tick" {
						s.Load(t.Context(), recent)
						s.act(t.Context(), s.engine.tick(c.now()))
					}
					send(s, tt.later)
					s.Load(t.Context(), recent)
					s.act(t.Context(), s.engine.tick(c.now()))
					cleared := 0
					list := s.Status().Alarms
					for _, a := range list {
						if a.ClearedUS != nil {
							cleared++
						}
					}
					if len(list) != tt.raised || cleared != tt.cleared {
						t.Errorf("%d alarms, %d cleared, want %d and %d: %+v", len(list), cleared, tt.raised, tt.cleared, list)
					}
				}
			})
		}
	}
}

// An alarm of a run that two ranks raise stays one over restarts, whichever of them
// is read first, and is cleared with the last.
func TestRunAlarmAfterRestart(t *testing.T) {
	const rules = "a: num_ooms > 5 clear 2 per run -> log"
	c, h := newClock(), newTestHub(t, t.TempDir())
	seq := 0
	send := func(s *Server, session string, ooms int64) {
		seq++
		c.add(time.Second)
		one := sampleOf(c, seq)
		one["num_ooms"] = ooms
		call(t, s, "/v1/samples", map[string]any{"v": 1, "session": session, "samples": []any{one}})
	}
	s := newTestServer(t, h, c, rules)
	hello(t, s, testSession, 0)
	hello(t, s, "session-2", 1)
	check := func(cleared bool) {
		t.Helper()
		s = newTestServer(t, h, c, rules)
		s.Load(t.Context(), recent)
		s.act(t.Context(), s.engine.tick(c.now()))
		if a := s.Status().Alarms; len(a) != 1 || (a[0].ClearedUS != nil) != cleared {
			t.Errorf("%+v", a)
		}
	}
	send(s, testSession, 9)
	send(s, "session-2", 9)
	check(false)
	send(s, testSession, 1) // who raised it is well again
	check(false)
	check(false)
	send(s, "session-2", 1)
	check(true)
}

// A job that ends leaves no alarm raised.
func TestEnd(t *testing.T) {
	c, h := newClock(), newTestHub(t, t.TempDir())
	s := newTestServer(t, h, c, "a: allocated > 1 -> log")
	hello(t, s, testSession, 0)
	call(t, s, "/v1/samples", batch(c, testSession, 1, 2))
	if st := s.Status(); len(st.Runs[0].Alarms) != 1 {
		t.Fatalf("%+v", st)
	}
	call(t, s, "/v1/samples", map[string]any{"v": 1, "session": testSession, "samples": []any{}, "end": true})
	st := newTestServer(t, h, c, "").Status()
	if len(st.Alarms) != 1 || st.Alarms[0].ClearedUS == nil {
		t.Errorf("%+v", st)
	}
}

// An alarm of a run stays raised until the last of its ranks that raise it ends.
func TestEndOfRank(t *testing.T) {
	c := newClock()
	s := newTestServer(t, newTestHub(t, t.TempDir()), c, "a: allocated > 1 per run -> log")
	for rank, session := range []string{testSession, "session-2"} {
		hello(t, s, session, rank)
		call(t, s, "/v1/samples", batch(c, session, 1, 2))
	}
	for i, session := range []string{testSession, "session-2"} {
		call(t, s, "/v1/samples", map[string]any{"v": 1, "session": session, "samples": []any{}, "end": true})
		if a := s.Status().Alarms; len(a) != 1 || (a[0].ClearedUS != nil) != (i == 1) {
			t.Errorf("rank %d has ended: %+v", i, a)
		}
	}
}

// cancelled returns a context that has ended.
func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// A store that does not answer is the server's fault: the job sends again.
func TestUnavailable(t *testing.T) {
	c := newClock()
	s := newTestServer(t, newTestHub(t, t.TempDir()), c, "")
	hello(t, s, testSession, 0)
	body, _ := json.Marshal(batch(c, testSession, 1, 1))
	r := httptest.NewRequest("POST", "/v1/samples", bytes.NewReader(body)).WithContext(cancelled())
	r.Host = "localhost"
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	if w.Code != http.StatusServiceUnavailable || s.Status().Notes == nil {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if code, answer := call(t, s, "/v1/samples", batch(c, testSession, 1, 1)); code != 200 || answer["stored"] != 1.0 {
		t.Errorf("sent again: %d %v", code, answer)
	}
	checkSeqs(t, s.store, testSession, 1)
}
