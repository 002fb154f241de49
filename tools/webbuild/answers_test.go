package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/answer/diff"
	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/answer/stats"
	"github.com/ashlar-mem/ashlar/internal/answer/tune"
	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/plan"
	"github.com/ashlar-mem/ashlar/internal/playground"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/internal/view"
)

// mismatches lists where a value is not of a type as the page knows it.
func mismatches(at string, v any, t reflect.Type) []string {
	t = view.Shown(t)
	wrong := func(ok bool) []string {
		if ok {
			return nil
		}
		return []string{fmt.Sprintf("%s is %.40v, not %v", at, v, t)}
	}
	switch t.Kind() {
	case reflect.Interface:
		return nil
	case reflect.Pointer:
		if v == nil {
			return nil
		}
		return mismatches(at, v, t.Elem())
	case reflect.Slice, reflect.Array:
		list, ok := v.([]any)
		if t == reflect.TypeFor[json.RawMessage]() {
			return nil
		}
		if !ok || t.Kind() == reflect.Array && len(list) != t.Len() {
			return wrong(false)
		}
		for i, x := range list {
			if found := mismatches(fmt.Sprintf("%s[%d]", at, i), x, t.Elem()); found != nil {
				return found // the others are alike
			}
		}
		return nil
	case reflect.Map:
		_, ok := v.(map[string]any)
		return wrong(ok)
	case reflect.Struct:
		return fieldMismatches(at, v, t)
	case reflect.Bool:
		_, ok := v.(bool)
		return wrong(ok)
	case reflect.String:
		_, ok := v.(string)
		return wrong(ok)
	}
	_, ok := v.(float64)
	return wrong(ok)
}

func fieldMismatches(at string, v any, t reflect.Type) (out []string) {
	object, ok := v.(map[string]any)
	if !ok {
		return []string{fmt.Sprintf("%s is %.40v, not %v", at, v, t)}
	}
	known := map[string]bool{}
	for _, f := range view.Fields(t) {
		known[f.Name] = true
		x, there := object[f.Name]
		name := t.String() + "." + f.Name
		switch {
		case !there && f.Optional:
		case !there:
			out = append(out, at+" has no "+f.Name)
		case x == nil && present[name]:
			out = append(out, at+"."+f.Name+" is null")
		case x == nil && (nullable[name] || f.Type == reflect.TypeFor[[]timeline.Frame]()):
		default:
			out = append(out, mismatches(at+"."+f.Name, x, f.Type)...)
		}
	}
	for name := range object {
		if !known[name] {
			out = append(out, fmt.Sprintf("%s.%s is not of %v", at, name, t))
		}
	}
	return out
}

// server is an ashlar view that a test began.
type server struct {
	*testing.T
	address string
}

func serve(t *testing.T, files ...string) *server {
	t.Helper()
	ashlar := filepath.Join(t.TempDir(), "ashlar")
	build := exec.Command("go", "build", "-o", ashlar, "./cmd/ashlar")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(ashlar, append([]string{"view", "--no-open"}, files...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t, strings.TrimSpace(line)}
	for version := -1.0; ; {
		list := s.ask(fmt.Sprintf("runs?since=%v", max(version, 0)), "").(map[string]any)
		if version = list["version"].(float64); !strings.Contains(fmt.Sprint(list["runs"]), "state:loading") {
			return s
		}
	}
}

// ask puts a question, with a body if there is one. Of an answer in lines it
// returns the last one of each name.
func (s *server) ask(path, body string) any {
	s.Helper()
	var reply *http.Response
	var err error
	if body == "" {
		reply, err = http.Get(s.address + "api/" + path)
	} else {
		reply, err = http.Post(s.address+"api/"+path, "application/json", strings.NewReader(body))
	}
	if err != nil {
		s.Fatal(err)
	}
	defer reply.Body.Close()
	data, err := io.ReadAll(reply.Body)
	if err != nil || reply.StatusCode != http.StatusOK {
		s.Fatalf("%s: %v, %s %s", path, err, reply.Status, data)
	}
	lines := map[string]any{}
	for d := json.NewDecoder(bytes.NewReader(data)); ; {
		var v any
		if err := d.Decode(&v); err == io.EOF {
			return lines
		} else if err != nil {
			s.Fatalf("%s: %v", path, err)
		}
		if !strings.Contains(path, "stream=1") {
			return v
		}
		for name, x := range v.(map[string]any) {
			lines[name] = x
		}
	}
}

// The server answers with what the types say.
func TestAnswers(t *testing.T) {
	var files []string
	for _, name := range []string{
		"variety/expand_tight", "variety/stateonly", "variety/nocontext", "variety/compile", "variety/midrun", "snapshots/streams_graphs-tight-default",
		"snapshots/leak_graph-default", "plan/recordings/odd",
	} {
		files = append(files, filepath.Join("..", "..", "testdata", filepath.FromSlash(name)+".pickle.gz"))
	}
	s := serve(t, files...)
	own := view.DocumentTypes()
	check := func(path, body, member string, typ reflect.Type) {
		t.Helper()
		v := s.ask(path, body)
		if member != "" {
			if v = v.(map[string]any)[member]; v == nil {
				t.Errorf("%s has no %s", path, member)
				return
			}
		}
		if document, ok := v.(map[string]any); ok && typ.Name() == "Document" {
			delete(document, "schema") // it is added to what the commands print, outside of the types
		}
		for _, text := range mismatches(path+": "+typ.Name(), v, typ) {
			t.Error(text)
		}
	}
	check("runs", "", "", own["Runs"])
	check("between?run=1", "", "", own["Between"]) // of a run with events
	for run := range files {
		of := func(path string) string { return fmt.Sprintf("%s&run=%d", path, run+1) }
		check(of("stats?sites=1"), "", "", reflect.TypeFor[stats.Document]())
		check(of("explain?sites=1"), "", "", reflect.TypeFor[explain.Document]())
		check(of("meta?"), "", "", own["Meta"])
		check(of("curve?n=20"), "", "", own["Curve"])
		check(of("segments?"), "", "", own["Segments"])
		check(of("stacks?peak=1"), "", "", own["Stacks"])
		check(of("events?count=200&frames=1"), "", "", own["Events"])
		check(of("find?what=oom"), "", "", own["Found"])
		check(of("matches?min=1MiB"), "", "", own["Matches"])
		check(of("window?"), "", "", own["Windows"])
		check(of("at?y=1"), "", "", own["FoundAt"])
		for id := range 3 {
			check(of(fmt.Sprintf("alloc?id=%d", id)), "", "", own["Alloc"])
		}
		for _, by := range []string{"stack", "category"} {
			check(of("legend?color="+by), "", "", own["Legend"])
		}
	}
	for _, limit := range []string{"", "&limit=300MiB"} {
		check("whatif?run=7&recorded=1&curve=5&sites=1&stream=1"+limit, "", "whatif", reflect.TypeFor[whatif.Document]())
		check("whatif?run=7&recorded=1&curve=5&sites=1&stream=1"+limit, "", "choice", own["Choice"])
		check("tune?run=7&budget=1s&sites=1&stream=1"+limit, "", "tune", reflect.TypeFor[tune.Document]())
	}
	check("pair?run=1&run=7&sites=1&stream=1", "", "pair", reflect.TypeFor[diff.PairDocument]())
	check("changes?run=1&run=7&stream=1", "", "changes", own["Changes"])
	check("ranks?run=1&run=6&run=7&sites=1&stream=1", "", "ranks", reflect.TypeFor[diff.RanksDocument]())
	check("plan", "", "", own["Offer"])
	config, _ := json.Marshal(`{"model_type": "qwen3", "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2, "num_attention_heads": 4,
		"num_key_value_heads": 2, "head_dim": 64, "vocab_size": 1000}`) // a text always can be
	for _, more := range []string{
		`"options": {"batch": "2", "seq": "64"}, "curve": 10`,
		`"options": {"batch": "2", "seq": "64"}, "against": 8`,
		`"options": {"batch": "2", "seq": "64"}, "against": 8, "curve": 10`,
		`"options": {"seq": "64"}, "limit": "1GiB", "max": "batch"`,
		`"options": {"batch": "64", "seq": "1024", "recompute": "best"}, "limit": "1GiB"`,
	} {
		check("plan", `{"version": 1, "config": `+string(config)+`, `+more+`}`, "", reflect.TypeFor[plan.Document]())
	}
	check("playground", "", "", own["Lessons"])
	lessons := s.ask("playground", "").(map[string]any)
	for _, e := range lessons["experiments"].([]any) {
		lines, _ := json.Marshal(e.(map[string]any)["lines"])
		check("playground", fmt.Sprintf(`{"version": %v, "lines": %s}`, lessons["version"], lines), "", reflect.TypeFor[playground.Answer]())
	}
}
