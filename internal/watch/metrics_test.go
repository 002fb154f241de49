package watch

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

var prometheus = flag.Bool("prometheus", false, "have a real Prometheus scrape the metrics")

// metricLine is a line of Prometheus's text format, of those that are written.
var metricLine = regexp.MustCompile(`^([a-z_]+)(\{([a-zA-Z_]+="([^"\\\n]|\\["\\n])*",?)*\})? (\d+(\.\d+)?([eE][+-]?\d+)?)$`)

func metricsOf(t *testing.T, s *Server) string {
	t.Helper()
	var out bytes.Buffer
	if err := s.WriteMetrics(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestMetrics(t *testing.T) {
	c := newClock()
	s := newTestServer(t, newTestHub(t, t.TempDir()), c, DefaultRules)
	for rank, session := range []string{"session-1", "session-2"} {
		hello(t, s, session, rank)
		call(t, s, "/v1/samples", batch(c, session, 1, 3))
	}
	call(t, s, "/v1/hello", Hello{V: 1, Session: "session-3", Run: "a \"run\" \\ with\nlines"})
	call(t, s, "/v1/samples", batch(c, "session-3", 1, 1))
	text := metricsOf(t, s)
	seen, kind := map[string]bool{}, ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if f := strings.Fields(line); f[0] == "#" {
			if f[1] == "TYPE" {
				kind = f[2]
				if counter := strings.HasSuffix(kind, "_total"); counter != (f[3] == "counter") {
					t.Errorf("%s", line)
				}
			}
			continue
		}
		m := metricLine.FindStringSubmatch(line)
		series, _, _ := strings.Cut(line, "} ")
		if m == nil || m[1] != kind || seen[series] {
			t.Errorf("%s: wrong, without its type, or twice", line)
		}
		seen[series] = true
	}
	want := `ashlar_reserved_bytes{run="job",attempt="0",rank="1",gpu="0",UUID="GPU-1",host="machine"} 2.147483648e+09`
	if !strings.Contains(text, want+"\n") {
		t.Errorf("there is no %s in\n%s", want, text)
	}
	if promtool, err := exec.LookPath("promtool"); err == nil {
		cmd := exec.Command(promtool, "check", "metrics")
		cmd.Stdin = strings.NewReader(text)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool: %v\n%s", err, out)
		}
	}
	c.add(seriesEnd + time.Second)
	if text := metricsOf(t, s); strings.Contains(text, "{run=") {
		t.Errorf("after five minutes:\n%s", text)
	}
}

// Of processes with the same labels the one that lives is shown, and of those the one
// that was seen last.
func TestMetricsOfRestartedJob(t *testing.T) {
	c := newClock()
	s := newTestServer(t, newTestHub(t, t.TempDir()), c, "")
	send := func(session string, seq int, reserved int64, end bool) {
		c.add(time.Second)
		one := sampleOf(c, seq)
		one["reserved"] = reserved
		call(t, s, "/v1/samples", map[string]any{"v": 1, "session": session, "samples": []any{one}, "end": end})
	}
	check := func(want string) {
		t.Helper()
		for range 20 {
			var got []string
			for line := range strings.Lines(metricsOf(t, s)) {
				if strings.HasPrefix(line, "ashlar_reserved_bytes{") {
					got = append(got, strings.Fields(line)[1])
				}
			}
			if len(got) != 1 || got[0] != want {
				t.Fatalf("%v, want %s", got, want)
			}
		}
	}
	for i := range 8 {
		session := fmt.Sprintf("session-%d", i)
		hello(t, s, session, 0)
		send(session, 1, int64(100+i), false)
		check(fmt.Sprint(100 + i))
	}
	send("session-3", 2, 50, false)
	check("50")
	send("session-3", 3, 60, true) // seen last, but it has ended
	check("107")
}

// Off this machine the metrics have TLS and a token.
func TestMetricsTLS(t *testing.T) {
	s := newTestServer(t, newTestHub(t, t.TempDir()), newClock(), "")
	test := httptest.NewTLSServer(s.MetricsHandler("secret"))
	defer test.Close()
	for header, want := range map[string]int{"": 401, "Bearer wrong": 401, "secret": 401, "Bearer secret": 200} {
		request, err := http.NewRequest(http.MethodGet, test.URL+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", header)
		answer, err := test.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("%q: %d, want %d", header, answer.StatusCode, want)
		}
	}
	if _, err := ListenTLS("127.0.0.1:0", "missing.pem", "missing.key"); err == nil {
		t.Error("a certificate that is not there")
	}
}

// A real Prometheus scrapes the metrics, and every query of the dashboard returns
// data.
func TestPrometheus(t *testing.T) {
	if !*prometheus {
		t.Skip("only with -prometheus")
	}
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip(err)
	}
	c := &clock{t: time.Now()}
	s := newTestServer(t, newTestHub(t, t.TempDir()), c, DefaultRules)
	hello(t, s, testSession, 0)
	call(t, s, "/v1/samples", batch(c, testSession, 1, 3))
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go Serve(t.Context(), l, s.MetricsHandler(""))
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	dir := t.TempDir()
	config := fmt.Sprintf("global: {scrape_interval: 1s}\nscrape_configs: [{job_name: ashlar, static_configs: [{targets: [%q]}]}]\n", l.Addr())
	if err := os.WriteFile(filepath.Join(dir, "p.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--config.file", filepath.Join(dir, "p.yml"), "--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", address)
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer killChild(cmd)
	ask := func(query string) bool {
		answer, err := http.Get("http://" + address + "/api/v1/query?query=" + url.QueryEscape(query))
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		body, _ := io.ReadAll(answer.Body)
		var document struct {
			Status string
			Data   struct{ Result []any }
		}
		if json.Unmarshal(body, &document) != nil || document.Status != "success" {
			t.Logf("%s: %s", query, body)
			return false
		}
		return len(document.Data.Result) > 0
	}
	queries := dashboardQueries(t)
	for _, query := range append(queries, `ashlar_reserved_bytes{job="ashlar",run="job",UUID="GPU-1"}`) {
		answered := false
		for range 300 {
			if answered = ask(query); answered {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		if !answered {
			t.Errorf("%s returns nothing\n%s", query, log.String())
		}
	}
}

// dashboardQueries returns the queries of docs/grafana.json, with its variables
// filled in.
func dashboardQueries(t *testing.T) (queries []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			queries = append(queries, strings.NewReplacer("$run", ".*", "$rank", ".*", "$__rate_interval", "10s").Replace(q.Expr))
		}
	}
	return queries
}

// Every query of the dashboard is about metrics that there are.
func TestDashboard(t *testing.T) {
	names := map[string]bool{"ashlar_alarms": true, "ashlar_lost_samples_total": true}
	for _, m := range metrics {
		names[m.name] = true
	}
	queries := dashboardQueries(t)
	if len(queries) < 8 {
		t.Errorf("only %d queries", len(queries))
	}
	word := regexp.MustCompile(`ashlar_[a-z_]+`)
	for _, q := range queries {
		for _, name := range word.FindAllString(q, -1) {
			if !names[name] {
				t.Errorf("%s: there is no %s", q, name)
			}
		}
	}
}
