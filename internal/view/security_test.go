package view

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// raw sends a request line and headers as they are.
func (c *client) raw(method, target string, headers ...string) (int, []byte) {
	c.t.Helper()
	conn, err := net.Dial("tcp", c.s.hosts[0])
	if err != nil {
		c.t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nConnection: close\r\n%s\r\n\r\n", method, target, strings.Join(headers, "\r\n"))
	reply, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		c.t.Fatal(err)
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return reply.StatusCode, body
}

func TestTheTokenIsNeeded(t *testing.T) {
	c := serve(t, nil, "variety/graphs")
	host := "Host: " + c.s.hosts[0]
	wrong := strings.Repeat("0", len(c.s.token))
	for _, path := range []string{
		"/", "/api/runs", "/index.html", "/assets/app.js", "/" + wrong + "/", "/" + wrong + "/api/runs", "/" + c.s.token[1:] + "/",
		"/" + c.s.token + "0/", "/" + strings.ToUpper(c.s.token) + "/x", "/favicon.ico", "/" + c.s.token[:31] + "/api/runs",
	} {
		status, body := c.raw("GET", path, host)
		refused(t, path, http.StatusNotFound, status, body)
	}
	for _, path := range []string{"", "api/runs", "api/meta?run=1", "assets/app.js"} {
		if status, body := c.raw("GET", "/"+c.s.token+"/"+path, host); status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if another := newToken(); len(c.s.token) != 32 || another == c.s.token {
		t.Error("tokens are not 128 random bits")
	}
	if status, _ := c.raw("GET", "/"+c.s.token, host); status != http.StatusPermanentRedirect {
		t.Errorf("without the slash: %d", status)
	}
}

func TestTokens(t *testing.T) {
	for _, bad := range []string{"", "short", strings.Repeat("a", minToken-1), strings.Repeat("a", 40) + "/", strings.Repeat("é", 40), strings.Repeat("a", 40) + " "} {
		if CheckToken(bad) == nil {
			t.Errorf("%q is taken for a token", bad)
		}
	}
	const own = "this-is-my-own-token_0123456789-abc"
	if err := CheckToken(own); err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Token: own})
	if err != nil {
		t.Fatal(err)
	}
	defer s.listener.Close()
	if !strings.HasSuffix(s.Address(), "/"+own+"/") {
		t.Errorf("the address is %s", s.Address())
	}
}

func TestTheHostMustBeTheLoopbackAddress(t *testing.T) {
	c := serve(t, nil, "variety/graphs")
	port := c.s.hosts[0][strings.IndexByte(c.s.hosts[0], ':'):]
	for _, host := range []string{"evil.example" + port, "127.0.0.1", "127.0.0.1:1", "localhost", "127.0.0.1.evil.example" + port, "[::1]" + port, "LOCALHOST.evil" + port} {
		status, body := c.raw("GET", "/"+c.s.token+"/api/runs", "Host: "+host)
		refused(t, host, http.StatusForbidden, status, body)
	}
	for _, target := range []string{"http://evil.example/" + c.s.token + "/api/runs"} { // overrides the header
		status, body := c.raw("GET", target, "Host: "+c.s.hosts[0])
		refused(t, target, http.StatusForbidden, status, body)
	}
	if status, _ := c.raw("GET", "/"+c.s.token+"/api/runs"); status != http.StatusBadRequest {
		t.Errorf("without a host: %d", status)
	}
	for _, host := range []string{"127.0.0.1" + port, "localhost" + port} {
		if status, body := c.raw("GET", "/"+c.s.token+"/api/runs", "Host: "+host); status != http.StatusOK {
			t.Errorf("%s: %d %s", host, status, body)
		}
	}
}

func TestPathsLeadNowhereElse(t *testing.T) {
	c := serve(t, nil, "variety/graphs")
	for _, path := range []string{
		"../x", "..", "assets/../index.html", "assets/../../etc/passwd", "%2e%2e/%2e%2e/etc/passwd", "assets/%2e%2e/index.html", "..%2f..%2fetc/passwd",
		"%252e%252e/etc/passwd", "assets//app.js", "./index.html", "assets/..%5c..%5cx", "assets\\app.js", "%00", "assets", "assets/", "api/", "api/../api/runs",
		"api/runs/", "api/nothing", "index.html/", "dist/index.html", "server.go",
	} {
		status, body := c.raw("GET", "/"+c.s.token+"/"+path, "Host: "+c.s.hosts[0])
		if status != http.StatusBadRequest && status != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	for _, target := range []string{"/../" + c.s.token + "/", "//" + c.s.token + "/", "/" + c.s.token + "/../" + c.s.token + "/"} {
		if status, body := c.raw("GET", target, "Host: "+c.s.hosts[0]); status < 400 || status >= 500 {
			t.Errorf("%s: %d %s", target, status, body)
		}
	}
}

func TestHeaders(t *testing.T) {
	c := serve(t, nil, "variety/graphs")
	for path, cache := range map[string]string{"": "no-cache", "assets/app.js": "no-cache", "api/runs": "no-store", "api/meta?run=9": "no-store"} {
		_, h, _ := c.do("GET", path, nil)
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
			"X-Content-Type-Options":  "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": cache,
		} {
			if h.Get(name) != want {
				t.Errorf("%q: %s is %q", path, name, h.Get(name))
			}
		}
		if h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%q: other pages may read it", path)
		}
	}
	status, h, body := c.do("HEAD", "", nil)
	if status != http.StatusOK || len(body) > 0 || h.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("HEAD: %d, %d bytes, %s", status, len(body), h.Get("Content-Type"))
	}
}

// All that is refused changes nothing.
func TestRefusedRequestsChangeNothing(t *testing.T) {
	c := serve(t, func(s *Server) { s.opts.MaxBytes = 2000 }, "variety/graphs")
	before := c.runs()
	own := "http://" + c.s.hosts[0]
	large := strings.Repeat("x", 2001)
	for _, x := range []struct {
		what, method, path, body string
		status                   int
		headers                  []string
	}{
		{"no type", "POST", "api/runs?name=a", "x", 415, nil},
		{"a form", "POST", "api/runs?name=a", "x", 415, []string{"Content-Type", "application/x-www-form-urlencoded"}},
		{"plain text", "POST", "api/runs?name=a", "x", 415, []string{"Content-Type", "text/plain", "Origin", own}},
		{"another page", "POST", "api/runs?name=a", "x", 403, []string{"Content-Type", octets, "Origin", "http://evil.example"}},
		{"no origin", "POST", "api/runs?name=a", "x", 403, []string{"Content-Type", octets, "Origin", "null"}},
		{"another port", "POST", "api/runs?name=a", "x", 403, []string{"Content-Type", octets, "Origin", "http://127.0.0.1:1"}},
		{"https", "POST", "api/runs?name=a", "x", 403, []string{"Content-Type", octets, "Origin", "https://" + c.s.hosts[0]}},
		{"cross-site", "POST", "api/runs?name=a", "x", 403, []string{"Content-Type", octets, "Sec-Fetch-Site", "cross-site"}},
		{"same-site", "POST", "api/runs?name=a", "x", 403, []string{"Content-Type", octets, "Sec-Fetch-Site", "same-site", "Origin", own}},
		{"no name", "POST", "api/runs", "x", 400, []string{"Content-Type", octets}},
		{"odd name", "POST", "api/runs?name=a%0ab", "x", 400, []string{"Content-Type", octets}},
		{"long name", "POST", "api/runs?name=" + strings.Repeat("n", 256), "x", 400, []string{"Content-Type", octets}},
		{"too large", "POST", "api/runs?name=a", large, 413, []string{"Content-Type", octets, "Origin", own}},
		{"no snapshot", "POST", "api/runs?name=a", "x", 422, []string{"Content-Type", octets, "Origin", own}},
		{"a method", "PUT", "api/runs?name=a", "x", 405, []string{"Content-Type", octets}},
		{"a method", "POST", "api/meta?run=1", "x", 405, []string{"Content-Type", octets}},
		{"a method", "DELETE", "api/meta?run=1", "", 405, nil},
		{"a method", "POST", "", "x", 405, nil},
		{"a method", "OPTIONS", "api/runs", "", 405, nil},
		{"delete from another page", "DELETE", "api/runs?run=1", "", 403, []string{"Origin", "http://evil.example"}},
		{"delete what was given", "DELETE", "api/runs?run=1", "", 409, []string{"Origin", own}},
		{"delete nothing", "DELETE", "api/runs", "", 400, nil},
		{"delete what is not there", "DELETE", "api/runs?run=77", "", 404, nil},
		{"a foreign host", "POST", "api/runs?name=a", "x", 403, []string{"Content-Type", octets, "Host", "evil.example"}},
	} {
		status, _, body := c.do(x.method, x.path, strings.NewReader(x.body), x.headers...)
		refused(t, x.what, x.status, status, body)
	}
	// A body of unknown length is cut where it becomes too large.
	status, _, body := c.do("POST", "api/runs?name=a", io.MultiReader(strings.NewReader(large)), "Content-Type", octets)
	refused(t, "too large, of unknown length", http.StatusRequestEntityTooLarge, status, body)
	if after := c.runs(); after.Version != before.Version || len(after.Runs) != 1 {
		t.Errorf("the runs have changed: %+v, before %+v", after, before)
	}
}

// stall sends the first bytes of a file and no more, until the returned function is called; done is called with the answer.
func (c *client) stall(t *testing.T, path, kind string, begin []byte, done func(status int, said []byte)) (end func()) {
	body, open := io.Pipe()
	t.Cleanup(func() { open.Close() })
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		status, _, said := c.do("POST", path, io.MultiReader(bytes.NewReader(begin), body), "Content-Type", kind)
		done(status, said)
	}()
	return func() {
		open.Close()
		<-ended
	}
}

const octets = "application/octet-stream"

// Uploads that stall are ended, so that others get their turn.
func TestStalledUploads(t *testing.T) {
	c := serve(t, func(s *Server) { s.grace = 50 * time.Millisecond })
	data, err := os.ReadFile(testdata("snapshots/gpt2_fixed-default"))
	if err != nil {
		t.Fatal(err)
	}
	ends := []func(){}
	var ended atomic.Int64 // on a slow machine, before they take their turn
	for range cap(c.s.reading) {
		ends = append(ends, c.stall(t, "api/runs?name=a", octets, data[:beginBytes+10], func(status int, said []byte) {
			if status != http.StatusOK { // which it is if it was given the rest in time
				refused(t, "stalled", http.StatusRequestTimeout, status, said)
				ended.Add(1)
			}
		}))
	}
	for len(c.s.reading)+int(ended.Load()) < cap(c.s.reading) {
		time.Sleep(time.Millisecond)
	}
	status, body := http.StatusRequestTimeout, []byte(nil)
	for status == http.StatusRequestTimeout { // a slow machine stalls, too
		status, _, body = c.do("POST", "api/runs?name=graphs.pickle.gz", bytes.NewReader(data), "Content-Type", octets)
	}
	if status != http.StatusOK {
		t.Errorf("%d: %s", status, body)
	}
	for ended.Load() == 0 { // it has had the place of one
		time.Sleep(time.Millisecond)
	}
	for _, end := range ends {
		end()
	}
}

// Uploads of which nothing comes keep nobody waiting, however many there are.
func TestStalledBeginnings(t *testing.T) {
	c := serve(t, func(s *Server) { s.grace = time.Hour })
	data, err := os.ReadFile(testdata("variety/graphs"))
	if err != nil {
		t.Fatal(err)
	}
	ends := []func(){}
	for range mostComing - 1 {
		ends = append(ends, c.stall(t, "api/runs?name=a", octets, data[:10], func(int, []byte) {}))
	}
	for c.s.coming.Load() < mostComing-1 {
		time.Sleep(time.Millisecond)
	}
	if status, _, body := c.do("POST", "api/runs?name=graphs.pickle.gz", bytes.NewReader(data), "Content-Type", octets); status != http.StatusOK {
		t.Errorf("%d: %s", status, body)
	}
	ends = append(ends, c.stall(t, "api/runs?name=a", octets, data[:10], func(int, []byte) {}))
	for c.s.coming.Load() < mostComing {
		time.Sleep(time.Millisecond)
	}
	status, _, body := c.do("POST", "api/runs?name=graphs.pickle.gz", bytes.NewReader(data), "Content-Type", octets)
	refused(t, "one too many", http.StatusServiceUnavailable, status, body)
	for _, end := range ends {
		end()
	}
}

// Questions that stall are ended, too.
func TestStalledQuestions(t *testing.T) {
	c := serve(t, func(s *Server) { s.grace = 50 * time.Millisecond })
	for _, path := range []string{"api/plan", "api/playground"} {
		answered := make(chan struct{})
		end := c.stall(t, path, "application/json", []byte("{"), func(status int, said []byte) {
			refused(t, path, http.StatusRequestTimeout, status, said)
			close(answered)
		})
		<-answered
		end()
	}
}

// TestPace: an upload that came fast buys no time to stall with it, and one that comes slowly must be faster while others wait.
func TestPace(t *testing.T) {
	for name, x := range map[string]struct {
		read          int64
		took          time.Duration
		crowded       bool
		comes         bool // who waits
		least, within time.Duration
	}{
		"at first":              {within: time.Minute, least: 50 * time.Second},
		"after much":            {read: 1 << 40, within: time.Minute, least: 50 * time.Second},
		"slow":                  {read: 100 * minRate, took: 150 * time.Second, within: 10 * time.Second, least: time.Second},
		"too slow":              {read: 100 * minRate, took: 170 * time.Second, within: -5 * time.Second, least: -time.Minute},
		"slow among others":     {read: 100 * minRate, took: 100 * time.Second, crowded: true, within: -30 * time.Second, least: -time.Minute},
		"slow, and others come": {read: 100 * minRate, took: 100 * time.Second, crowded: true, comes: true, within: time.Minute, least: 50 * time.Second},
		"fast among others":     {read: 100 * crowdedRate, took: 100 * time.Second, crowded: true, within: time.Minute, least: 50 * time.Second},
	} {
		var left time.Duration
		b := &cappedBody{r: bytes.NewReader(make([]byte, 1<<20)), grace: time.Minute, read: x.read, took: x.took, crowded: func() bool { return x.crowded }, hurried: x.crowded && !x.comes}
		b.until = func(end time.Time) error {
			left = time.Until(end)
			return nil
		}
		if _, err := b.Read(make([]byte, 100)); err != nil || left > x.within || left < x.least {
			t.Errorf("%s: it may stall for %v, %v", name, left, err)
		}
	}
}

// TestLinesNotTaken: who does not read the lines of an answer ends the work.
func TestLinesNotTaken(t *testing.T) {
	client, server := net.Pipe() // keeps nothing that is not read
	defer client.Close()
	ended := make(chan error, 1)
	s := &Server{grace: 20 * time.Millisecond}
	hs := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ended <- s.inLines(r.Context(), w, func(ctx context.Context, out *lines) error {
			for ctx.Err() == nil {
				out.send("progress", "a line that nobody reads")
			}
			return context.Cause(ctx)
		})
	})}
	listener := &oneConn{conns: make(chan net.Conn, 1)}
	listener.conns <- server
	go func() { _ = hs.Serve(listener) }()
	defer hs.Close()
	if _, err := client.Write([]byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// oneConn is a listener with the connections that it is given.
type oneConn struct {
	conns chan net.Conn
	close sync.Once
}

func (l *oneConn) Accept() (net.Conn, error) {
	c, ok := <-l.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (l *oneConn) Close() error {
	l.close.Do(func() { close(l.conns) })
	return nil
}

func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }

// A valid snapshot that is too large is refused too, however much of it would
// have been enough.
func TestOversizeSnapshot(t *testing.T) {
	data, err := os.ReadFile(testdata("variety/graphs"))
	if err != nil {
		t.Fatal(err)
	}
	for _, room := range []int{len(data) - 1, len(data)} {
		c := serve(t, func(s *Server) { s.opts.MaxBytes = int64(room) })
		status, _, body := c.do("POST", "api/runs?name=graphs.pickle.gz", io.MultiReader(bytes.NewReader(data)), "Content-Type", "application/octet-stream")
		want := http.StatusOK
		if room < len(data) {
			want = http.StatusRequestEntityTooLarge
		}
		if status != want || len(c.runs().Runs) != 1-min(1, len(data)-room) {
			t.Errorf("%d bytes where %d may be: %d %s, %d runs", len(data), room, status, body, len(c.runs().Runs))
		}
	}
}

// A body that breaks off is no truncated file.
func TestBrokenUpload(t *testing.T) {
	data, err := os.ReadFile(testdata("variety/graphs"))
	if err != nil {
		t.Fatal(err)
	}
	c := serve(t, nil)
	conn, err := net.Dial("tcp", c.s.hosts[0])
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST /%s/api/runs?name=a HTTP/1.1\r\nHost: %s\r\nContent-Type: application/octet-stream\r\nContent-Length: %d\r\n\r\n", c.s.token, c.s.hosts[0], len(data))
	conn.Write(data[:len(data)/2])
	conn.(*net.TCPConn).CloseWrite()
	reply, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err == nil {
		if reply.StatusCode < 400 {
			t.Errorf("half a file: %s", reply.Status)
		}
		reply.Body.Close()
	}
	conn.Close()
	if n := len(c.runs().Runs); n > 0 {
		t.Errorf("half a file makes %d runs", n)
	}
}

func TestMalformedParameters(t *testing.T) {
	c := serve(t, nil, "variety/graphs")
	for _, path := range []string{
		"meta", "meta?run=", "meta?run=x", "meta?run=-1", "meta?run=1%zz", "meta?run=99999999999999999999",
		"timeline?run=1&width=0", "timeline?run=1&width=9000", "timeline?run=1&width=1e3", "timeline?run=1&height=-1", "timeline?run=1&from=x",
		"timeline?run=1&from=NaN", "timeline?run=1&to=Inf", "timeline?run=1&from=50&to=50", "timeline?run=1&from=60&to=20", "timeline?run=1&x=y",
		"timeline?run=1&from=1e300", "timeline?run=1&color=red", "timeline?run=1&stack=(", "timeline?run=1&min=big", "timeline?run=1&pool=1",
		"timeline?run=1&stream=a", "timeline?run=1&alive=1000000", "timeline?run=1&never_freed=2", "timeline?run=1&ymin=10&ymax=5",
		"timeline?run=1&stack=" + strings.Repeat("a", 2000),
		"curve?run=1&n=0", "curve?run=1&n=100000000", "curve?run=1&from=-5&to=-1",
		"segments?run=1&event=-2", "segments?run=1&event=105", "segments?run=1&event=1.5", "segments?run=1&event=",
		"alloc?run=1", "alloc?run=1&id=-1", "alloc?run=1&id=x", "stacks?run=1&event=x", "stacks?run=1&area=1&from=50&to=10", "stacks?run=1&user=x",
		"events?run=1&from=-1", "events?run=1&count=0", "events?run=1&count=100000", "events?run=1&action=nothing", "events?run=1&stack=[",
		"events?run=1&min_size=x", "events?run=1&addr=x", "events?run=1&dir=2", "events?run=1&row=-1", "events?run=1&pool=a,b",
		"between?run=1&after=x", "between?run=1&after=7&until=7", "matches?run=1&stack=(", "matches?run=1&pick=-1", "window?run=1&from=x", "window?run=1&from=9&to=3",
		"find?run=1&what=x", "find?run=1&after=x", "find?run=1&dir=0", "legend?run=1&color=x", "legend?run=1&event=x", "at?run=1&event=x", "at?run=1&y=x",
		"whatif?run=1", "runs?since=x",
	} {
		status, _, body := c.do("GET", "api/"+path, nil)
		if path == "segments?run=1&event=" { // as if it were not there
			if status != http.StatusOK {
				t.Errorf("%s: %d %s", path, status, body)
			}
			continue
		}
		refused(t, path, http.StatusBadRequest, status, body)
	}
	for _, path := range []string{"meta?run=7", "alloc?run=1&id=100000"} {
		status, _, body := c.do("GET", "api/"+path, nil)
		refused(t, path, http.StatusNotFound, status, body)
	}
}
