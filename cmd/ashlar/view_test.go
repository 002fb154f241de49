package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/internal/test/short"
)

// startView runs ashlar view and returns the address it prints. The function
// ends it and returns its exit status and what it said.
func startView(t *testing.T, files ...string) (address string, end func() (int, string)) {
	t.Helper()
	return startViewOn(t, false, files...)
}

func startViewOn(t *testing.T, terminal bool, files ...string) (address string, end func() (int, string)) {
	t.Helper()
	t.Setenv(tokenVariable, "")
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	var stderr bytes.Buffer
	code := make(chan int, 1)
	go func() {
		code <- execute(ctx, stdio{in: strings.NewReader(""), out: in, err: &stderr, terminal: terminal}, append([]string{"view", "--no-open"}, files...))
		in.Close()
	}()
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	if err != nil {
		t.Fatalf("no address: %v, status %d, %s", err, <-code, &stderr)
	}
	end = func() (int, string) {
		cancel()
		rest, err := io.ReadAll(lines)
		if err != nil || len(rest) > 0 {
			t.Errorf("after the address: %q, %v", rest, err)
		}
		return <-code, stderr.String()
	}
	return strings.TrimSuffix(line, "\n"), end
}

func fetch(t *testing.T, address string) (int, []byte) {
	t.Helper()
	reply, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply.StatusCode, body
}

type viewRun struct {
	ID    int
	File  string
	State string
	Error *string
}

// settled waits until all files are read.
func settled(t *testing.T, address string) []viewRun {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		var l struct{ Runs []viewRun }
		if _, body := fetch(t, address+"api/runs"); json.Unmarshal(body, &l) != nil {
			t.Fatalf("%s", body)
		}
		loading := false
		for _, r := range l.Runs {
			loading = loading || r.State == "loading"
		}
		if !loading {
			return l.Runs
		}
	}
	t.Fatal("the files are not read")
	return nil
}

// The page cannot say something else than the commands: the documents are the
// same to the byte.
func TestViewSaysWhatTheCommandsSay(t *testing.T) {
	dir := filepath.Join("..", "..", "testdata")
	files := []string{
		filepath.Join(dir, "snapshots", "gpt2_varlen-tight-default.pickle.gz"), filepath.Join(dir, "variety", "expand_tight.pickle.gz"),
		filepath.Join(dir, "variety", "nocontext.pickle.gz"), filepath.Join(dir, "variety", "ring.pickle.gz"),
		filepath.Join("..", "..", "snapshot", "recorder", "testdata", "oom.pickle"),
	}
	several := filepath.Join(t.TempDir(), "several.pickle")
	if code := execute(t.Context(), stdio{out: io.Discard, err: os.Stderr},
		[]string{"gen", files[0], several, "--events", "3000", "--devices", "2"}); code != 0 {
		t.Fatal(code)
	}
	files = append(files, several)
	address, end := startView(t, files...)
	runs := settled(t, address)
	if len(runs) != len(files)+1 {
		t.Fatalf("%+v", runs)
	}
	command := func(args ...string) string {
		var out, stderr bytes.Buffer
		if code := execute(t.Context(), stdio{out: &out, err: &stderr}, args); code != 0 {
			t.Fatalf("%q: %d %s", args, code, &stderr)
		}
		return out.String()
	}
	for i, r := range runs {
		device := []string{}
		if r.File == several {
			device = []string{"--device", fmt.Sprint(i - len(files) + 1)}
		}
		for _, x := range []struct {
			args  []string
			query url.Values
		}{
			{[]string{"stats"}, nil},
			{[]string{"explain"}, nil},
			{[]string{"whatif", "--set", "expandable_segments:True", "--set", ""}, url.Values{"set": {"expandable_segments:True", ""}}},
			{
				[]string{"whatif", "--set", "max_split_size_mb:64", "--limit", "3GiB", "--device-memory", "none", "--on-oom", "skip"},
				url.Values{"set": {"max_split_size_mb:64"}, "limit": {"3GiB"}, "device_memory": {"none"}, "on_oom": {"skip"}},
			},
		} {
			want := command(append(append(x.args, "--json", r.File), device...)...)
			q := url.Values{"run": {fmt.Sprint(r.ID)}}
			for k, v := range x.query {
				q[k] = v
			}
			status, body := fetch(t, address+"api/"+x.args[0]+"?"+q.Encode())
			if status != http.StatusOK || string(body) != want {
				t.Errorf("%s of %s: status %d, the page has %d bytes, the command %d", x.args, r.File, status, len(body), len(want))
			}
		}
	}
	for _, q := range []string{"", "set=nonsense", "set=&limit=0", "set=&on_oom=maybe", "set=&device_memory=x"} {
		if status, body := fetch(t, address+"api/whatif?run=1&"+q); status != http.StatusBadRequest {
			t.Errorf("whatif %q: %d %s", q, status, body)
		}
	}
	if code, said := end(); code != exitOK || said != "" {
		t.Errorf("status %d, %q", code, said)
	}
}

// A dropped file is the same as one that was given, and what is no snapshot says
// so in words.
func TestViewOfDroppedFiles(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken.pickle")
	if err := os.WriteFile(broken, []byte("\x80\x02}broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	address, end := startView(t, broken)
	if runs := settled(t, address); len(runs) != 1 || runs[0].State != "failed" || !strings.Contains(*runs[0].Error, "broken.pickle") {
		t.Errorf("%+v", runs)
	}
	post := func(name string, data []byte) (int, string) {
		reply, err := http.Post(address+"api/runs?name="+name, "application/octet-stream", bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		defer reply.Body.Close()
		body, _ := io.ReadAll(reply.Body)
		return reply.StatusCode, string(body)
	}
	for _, x := range []struct{ name, data, want string }{
		{"b.png", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "b.png"},
		{"c.pickle", "\x80\x02cos\nsystem\n(S'x'\ntR.", "c.pickle"},
		{"empty", "", "empty: the file is empty"},
	} {
		if status, body := post(x.name, []byte(x.data)); status != http.StatusUnprocessableEntity || !strings.Contains(body, x.want) {
			t.Errorf("%s: %d %s", x.name, status, body)
		}
	}
	// A message is explained as the command explains it.
	message := filepath.Join(t.TempDir(), "a.txt")
	text := "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 1.00 GiB of which 3.00 MiB is free.\n"
	if err := os.WriteFile(message, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var explained bytes.Buffer
	if code := execute(t.Context(), stdio{out: &explained, err: io.Discard}, []string{"explain", "--json", message}); code != 0 {
		t.Fatal(code)
	}
	status, said := post("a.txt", []byte(text))
	var page struct{ Explain map[string]any }
	var command map[string]any
	if err := errors.Join(json.Unmarshal([]byte(said), &page), json.Unmarshal(explained.Bytes(), &command)); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s: %v", status, said, err)
	}
	if page.Explain["file"] != "a.txt" || command["cause"] == "" {
		t.Errorf("the page explains %v: %v", page.Explain["file"], page.Explain["cause"])
	}
	for _, name := range []string{"kind", "cause", "cause_text", "summary", "arithmetic", "fixes", "evidence"} {
		if !reflect.DeepEqual(page.Explain[name], command[name]) {
			t.Errorf("%s is %v on the page, %v by the command", name, page.Explain[name], command[name])
		}
	}
	t.Chdir(filepath.Join("..", "..", "testdata", "variety"))
	data, err := os.ReadFile("graphs.pickle.gz")
	if err != nil {
		t.Fatal(err)
	}
	if status, body := post("graphs.pickle.gz", data); status != http.StatusOK || body != "{\"runs\":[2]}\n" {
		t.Fatalf("%d %s", status, body)
	}
	var want bytes.Buffer
	if code := execute(t.Context(), stdio{out: &want, err: io.Discard}, []string{"stats", "--json", "graphs.pickle.gz"}); code != 0 {
		t.Fatal(code)
	}
	if status, body := fetch(t, address+"api/stats?run=2"); status != http.StatusOK || string(body) != want.String() {
		t.Errorf("%d, other than the command says:\n%s\n%s", status, body, &want)
	}
	if code, said := end(); code != exitOK || !strings.HasPrefix(said, "ashlar: ") || strings.Count(said, "\n") != 1 {
		t.Errorf("status %d, %q", code, said)
	}
}

func TestViewOnABusyPort(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	var stdout, stderr bytes.Buffer
	code := execute(t.Context(), stdio{out: &stdout, err: &stderr}, []string{"view", "--no-open", "--port", fmt.Sprint(port)})
	if want := fmt.Sprintf("ashlar: port %d cannot be used", port); code != exitInput || stdout.Len() > 0 ||
		!strings.HasPrefix(stderr.String(), want) || strings.Count(stderr.String(), "\n") != 1 {
		t.Errorf("status %d, stdout %q, stderr %q", code, &stdout, &stderr)
	}
}

// The same holds for comparisons, and for a search that comes to its end, but for
// the time it took.
func TestViewComparesAndTunesAsTheCommands(t *testing.T) {
	short.Skip(t)
	dir := filepath.Join("..", "..", "testdata")
	files := []string{
		filepath.Join(dir, "snapshots", "leak_graph-default.pickle.gz"), filepath.Join(dir, "snapshots", "leak_graph-tight-default.pickle.gz"),
		filepath.Join(dir, "variety", "graphs.pickle.gz"), filepath.Join(dir, "variety", "stateonly.pickle.gz"),
	}
	address, end := startView(t, files...)
	settled(t, address)
	elapsed := regexp.MustCompile(`"elapsed_seconds": *[0-9.]+`)
	for _, x := range []struct {
		args []string
		path string
	}{
		{[]string{"diff", files[0], files[1]}, "pair?run=1&run=2"},
		{[]string{"diff", files[1], files[0], "--at", "end"}, "pair?run=2&run=1&at=end"},
		{[]string{"diff", files[0], files[3]}, "pair?run=1&run=4"},
		{[]string{"diff", files[0], files[1], "--at", "peak", "--at", "100"}, "pair?run=1&run=2&at=peak&at=100"},
		{[]string{"diff", files[0], "--at", "peak", "--at", "end"}, "pair?run=1&run=1&at=peak&at=end"},
		{append([]string{"diff"}, files...), "ranks?run=1&run=2&run=3&run=4"},
		{[]string{"tune", files[2], "--budget", "60s"}, "tune?run=3&budget=60s"},
		{[]string{"tune", files[2], "--budget", "60s", "--limit", "100MiB", "--device-memory", "none"}, "tune?run=3&budget=60s&limit=100MiB&device_memory=none"},
		{[]string{"whatif", files[2], "--set", "expandable_segments:True", "--curve", "20"}, "whatif?run=3&set=expandable_segments:True&curve=20"},
	} {
		var out, stderr bytes.Buffer
		if code := execute(t.Context(), stdio{out: &out, err: &stderr}, append(x.args, "--json")); code != 0 {
			t.Fatalf("%q: %d %s", x.args, code, &stderr)
		}
		status, body := fetch(t, address+"api/"+x.path)
		got, want := elapsed.ReplaceAllString(string(body), ""), elapsed.ReplaceAllString(out.String(), "")
		if status != http.StatusOK || got != want {
			t.Errorf("%s: status %d, the page has %d bytes, the command %d", x.args, status, len(body), out.Len())
		}
	}
	if code, said := end(); code != exitOK || said != "" {
		t.Errorf("status %d, %q", code, said)
	}
}

// The address can be kept: port, token and place are those that were given.
func TestViewAtAFixedAddress(t *testing.T) {
	free, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	free.Close()
	const token = "0123456789abcdefghijklmnopqrstuv_-"
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("http://127.0.0.1:%d/%s/#/1/timeline?event=3", port, token)
	address, end := startView(t, "--port", fmt.Sprint(port), "--token-file", file, "--at", "#/1/timeline?event=3")
	if address != want {
		t.Errorf("the address is %s, want %s", address, want)
	}
	if status, _ := fetch(t, address); status != http.StatusOK {
		t.Errorf("status %d", status)
	}
	if code, said := end(); code != exitOK || said != "" {
		t.Errorf("status %d, %q", code, said)
	}
	fails := func(want string, args ...string) {
		t.Helper()
		var stderr bytes.Buffer
		code := execute(t.Context(), stdio{in: strings.NewReader(""), out: io.Discard, err: &stderr}, append([]string{"view", "--no-open"}, args...))
		if code != exitInput || !strings.Contains(stderr.String(), want) {
			t.Errorf("%q: status %d, %s", args, code, &stderr)
		}
	}
	fails("is no place of the page", "--at", "https://example.com/")
	fails("there is no screen elsewhere", "--at", "#/1/elsewhere")
	fails("no such file", "--token-file", file+".none")
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	fails("can be read or written by others", "--token-file", file)
	t.Setenv(tokenVariable, "guess-me")
	fails(tokenVariable + ": the token has 8 characters")
}

// Over SSH the way to the page is shown.
func TestViewOverSSH(t *testing.T) {
	t.Setenv("SSH_CONNECTION", "10.0.0.1 5000 10.0.0.2 22")
	t.Setenv("USER", "ann")
	address, end := startViewOn(t, true)
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("ssh -L %s:127.0.0.1:%[1]s ann@10.0.0.2\n", at.Port())
	if code, said := end(); code != exitOK || !strings.HasSuffix(said, want) {
		t.Errorf("status %d, %q, want %q", code, said, want)
	}
}

func TestTunnel(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		env  map[string]string
		want string
	}{
		{map[string]string{"DISPLAY": ":0"}, ""},
		{map[string]string{"WAYLAND_DISPLAY": "wayland-0", "USER": "ann"}, ""},
		{map[string]string{"USER": "ann"}, "ssh -L 8080:127.0.0.1:8080 ann@" + host},
		{map[string]string{"DISPLAY": ":0", "SSH_CONNECTION": "10.0.0.1 5000 10.0.0.2 22"}, "ssh -L 8080:127.0.0.1:8080 10.0.0.2"},
		{map[string]string{"USER": "ann", "SSH_CONNECTION": "10.0.0.1 5000 10.0.0.2 2200"}, "ssh -p 2200 -L 8080:127.0.0.1:8080 ann@10.0.0.2"},
	} {
		if runtime.GOOS != "linux" && x.env["SSH_CONNECTION"] == "" {
			x.want = ""
		}
		if got := tunnel(8080, func(name string) string { return x.env[name] }); got != x.want {
			t.Errorf("%v: %q, want %q", x.env, got, x.want)
		}
	}
}
