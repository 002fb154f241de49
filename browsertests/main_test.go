package browsertests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/browsertests/page"
)

// The files that the tests show.
const (
	varlen = "../testdata/snapshots/gpt2_varlen-tight-default.pickle.gz" // died of fragmentation
	multi  = "../testdata/snapshots/unet_multires-tight-default.pickle.gz"
	stream = "../testdata/snapshots/streams_graphs-tight-default.pickle.gz" // pending frees, private pools
	expand = "../testdata/variety/expand_tight.pickle.gz"
	long   = "../testdata/snapshots/serve_generate-tight-default.pickle.gz" // 373,685 events
	calm   = "../testdata/snapshots/llama_ckpt-default.pickle.gz"           // nothing failed
	midrun = "../testdata/variety/midrun.pickle.gz"
	state  = "../testdata/variety/stateonly.pickle.gz"
)

// soon is how long the page may take for anything; it is generous because the
// machine may be busy.
const soon = 30 * time.Second

// inFirefox runs the tests in Firefox; otherwise they run in Chromium.
var inFirefox = os.Getenv("BROWSER") == "firefox"

// stage has what all tests share: the program, the browser, a server for each
// set of files.
var stage struct {
	ashlar  string
	browser *page.Browser

	mu      sync.Mutex
	servers map[string]*page.Server
}

func TestMain(m *testing.M) {
	code, err := perform(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "browsertests:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

func perform(m *testing.M) (int, error) {
	launch, there := page.Launch, page.Chromium()
	if inFirefox {
		launch, there = page.LaunchFirefox, page.Firefox()
	}
	if there == "" {
		fmt.Println("browsertests: left out, there is no browser")
		return 0, nil
	}
	dir, err := os.MkdirTemp("", "ashlar")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	stage.ashlar = os.Getenv("ASHLAR")
	if stage.ashlar == "" {
		stage.ashlar = filepath.Join(dir, "ashlar")
		build := exec.Command("sh", "-c", `make -s engine && go build -o "$0" ./cmd/ashlar`, stage.ashlar)
		build.Dir = ".."
		if out, err := build.CombinedOutput(); err != nil {
			return 0, fmt.Errorf("build ashlar: %w\n%s", err, out)
		}
	}
	stage.servers = map[string]*page.Server{}
	if stage.browser, err = launch(context.Background()); err != nil {
		return 0, err
	}
	code := m.Run()
	stage.browser.Close()
	var wrong []error
	for _, s := range stage.servers {
		wrong = append(wrong, s.Close())
	}
	return code, errors.Join(wrong...)
}

// scene is a page in a test. Every step that fails ends the test.
type scene struct {
	*testing.T
	page   *page.Page
	server *page.Server
	hints  []string // problems of the console that the test makes on purpose
}

// open shows files at a place of the page, such as #/1/timeline.
func open(t *testing.T, hash string, files ...string) *scene {
	t.Helper()
	return openAt(t, hash, 1600, 900, false, files...)
}

func openAt(t *testing.T, hash string, width, height int64, dark bool, files ...string) *scene {
	t.Helper()
	stage.mu.Lock()
	defer stage.mu.Unlock()
	key := strings.Join(files, "\n")
	server := stage.servers[key]
	if server == nil {
		var err error
		if server, err = page.Serve(stage.ashlar, files...); err != nil {
			t.Fatal(err)
		}
		stage.servers[key] = server
	}
	return show(t, server, hash, width, height, dark)
}

// openAlone has a server of its own: for tests after which there are other runs.
func openAlone(t *testing.T, hash string, files ...string) *scene {
	t.Helper()
	server, err := page.Serve(stage.ashlar, files...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return show(t, server, hash, 1600, 900, false)
}

func show(t *testing.T, server *page.Server, hash string, width, height int64, dark bool) *scene {
	t.Helper()
	p, err := stage.browser.Open(server.Address+hash, width, height, dark)
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{T: t, page: p, server: server}
	t.Cleanup(func() {
		s.noProblems()
		p.Close()
	})
	return s
}

// noProblems fails if the console shows anything in red or yellow, which a
// breach of the content security policy does as well.
func (s *scene) noProblems() {
	s.Helper()
next:
	for _, text := range s.page.Problems() {
		for _, hint := range s.hints {
			if strings.Contains(text, hint) {
				continue next
			}
		}
		s.Errorf("the console says: %s", text)
	}
}

func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *scene) until(condition string) {
	s.Helper()
	s.must(s.page.Until(condition, soon))
}

func (s *scene) sees(selector string) {
	s.Helper()
	s.until("document.querySelector(" + page.Quote(selector) + ")")
}

func (s *scene) text(selector string) string {
	s.Helper()
	text, err := s.page.Text(selector)
	s.must(err)
	return text
}

func (s *scene) value(script string, v any) {
	s.Helper()
	s.must(s.page.Value(script, v))
}

func (s *scene) number(script string) float64 {
	s.Helper()
	var n float64
	s.value(script, &n)
	return n
}

// bytes is the exact number behind a size on the page.
func (s *scene) bytes(field string) int64 {
	s.Helper()
	selector := "[data-field=" + page.Quote(field) + "][data-bytes]"
	s.sees(selector)
	return int64(s.number("Number(document.querySelector(" + page.Quote(selector) + ").dataset.bytes)"))
}

// api asks the server behind the page.
func (s *scene) api(path string, v any) {
	s.Helper()
	s.value("fetch("+page.Quote("api/"+path)+").then((r) => r.json())", v)
}

func (s *scene) press(keys string) {
	s.Helper()
	s.must(s.page.Press(keys))
}

func (s *scene) click(selector string) {
	s.Helper()
	s.sees(selector)
	s.must(s.page.Click(selector))
}

// clickUntil clicks until something is so. The label beside a button may change its
// length while the mouse is down, so that the button is gone from under it.
func (s *scene) clickUntil(selector, condition string) {
	s.Helper()
	for range 10 {
		s.click(selector)
		if s.page.Until(condition, 3*time.Second) == nil {
			return
		}
	}
	s.until(condition)
}

// hash is what comes after # in the address, once it has settled.
func (s *scene) hash(want string) {
	s.Helper()
	s.until("location.hash.includes(" + page.Quote(want) + ")")
}

// command runs ashlar with --json and reads its document.
func command(t *testing.T, v any, args ...string) {
	t.Helper()
	out, err := exec.Command(stage.ashlar, append(args, "--json")...).Output()
	if err != nil {
		t.Fatalf("ashlar %v: %v", args, err)
	}
	if err := json.Unmarshal(out, v); err != nil {
		t.Fatal(err)
	}
}

// lookup finds a value of a document by its dotted path.
func lookup(doc map[string]any, path string) any {
	var at any = doc
	for name := range strings.SplitSeq(path, ".") {
		m, ok := at.(map[string]any)
		if !ok {
			return nil
		}
		at = m[name]
	}
	return at
}
