package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ashlar-mem/ashlar/internal/plan"
	"github.com/ashlar-mem/ashlar/internal/plan/cards"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/ashlar-mem/ashlar/settings"
)

func shapeNamed(t testing.TB, name string) shape {
	t.Helper()
	i := slices.IndexFunc(shapes(), func(s shape) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("there is no shape %s", name)
	}
	return shapes()[i]
}

// asking is a question about a shape; pairs are options and their values.
func asking(t testing.TB, name string, pairs ...string) planQuestion {
	t.Helper()
	q := planQuestion{Version: planVersion, Config: string(shapeNamed(t, name).Config), Options: map[string]string{}}
	for i := 0; i < len(pairs); i += 2 {
		q.Options[pairs[i]] = pairs[i+1]
	}
	return q
}

// post asks for a plan.
func (c *client) post(path string, q any, headers ...string) (int, []byte) {
	c.t.Helper()
	body, err := json.Marshal(q)
	if err != nil {
		c.t.Fatal(err)
	}
	status, _, reply := c.do("POST", path, bytes.NewReader(body), append([]string{"Content-Type", "application/json"}, headers...)...)
	return status, reply
}

// The form offers what the planner takes, under names that leave those of the
// address alone.
func TestPlanForm(t *testing.T) {
	c := serve(t, nil)
	var f planForm
	c.json("api/plan", &f)
	all := plan.Catalogue()
	if len(f.Options) != len(all) || len(f.Cards) != len(cards.List()) || len(f.Shapes) != len(shapes()) || len(f.Heads) == 0 {
		t.Fatalf("%d options, %d cards, %d shapes", len(f.Options), len(f.Cards), len(f.Shapes))
	}
	for i, o := range f.Options {
		want := planOption{Name: all[i].Name, Value: all[i].Value, Usage: all[i].Usage, Words: []string{}, Numbered: []string{}, Mode: string(all[i].Mode())}
		want.Words, want.Numbered = append(want.Words, all[i].Words()...), append(want.Numbered, all[i].Numbered()...)
		want.Least, want.Most = all[i].Bounds()
		if diff := cmp.Diff(want, o); diff != "" {
			t.Error(diff)
		}
		if slices.Contains([]string{"v", "shape", "config", "name", "gpu", "limit", "settings", "head", "max", "against", "event", "alloc"}, o.Name) {
			t.Errorf("the address has another meaning for %s", o.Name)
		}
	}
}

// The kinds of runs set options that there are, to values that they take, and no
// two that can be planned set the same.
func TestPlanKinds(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range planKinds {
		var o plan.Options
		for name, value := range k.Set {
			if err := o.Set(name, value); err != nil {
				t.Errorf("%s: %s %v", k.Name, name, err)
			}
		}
		if k.Why == "" && seen[o.String()] {
			t.Errorf("%s sets what another does: %q", k.Name, o.String())
		}
		seen[o.String()] = true
	}
}

// The shapes are the public models: their parameters are counted as published.
func TestShapes(t *testing.T) {
	short.Skip(t)
	published := map[string]int64{
		"llama-3.2-1b": 1_235_814_400, "llama-3.1-8b": 8_030_261_248, "llama-3.1-70b": 70_553_706_496,
		"qwen3-1.7b": 1_720_574_976, "qwen3-8b": 8_190_735_360, "qwen3-30b-a3b": 30_532_122_624,
		"mistral-7b": 7_248_023_552, "gemma-3-1b": 999_885_952, "gpt-oss-20b": 20_914_757_184,
		"gpt2": 124_439_808, "bert-base": 109_514_298, "t5-large": 737_668_096, "vit-large": 304_715_752,
	}
	for _, s := range shapes() {
		m, err := model.Read(bytes.NewReader(s.Config))
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
			continue
		}
		q := plan.Question{Model: m, Settings: settings.Default(), NoLevers: true}
		for name, value := range s.Start {
			if err := q.Options.Set(name, value); err != nil {
				t.Errorf("%s: %v", s.Name, err)
			}
		}
		a, err := plan.Ask(t.Context(), q)
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
			continue
		}
		if a.Parameters != published[s.Name] || s.Title == "" {
			t.Errorf("%s, %q: %d parameters, %d published", s.Name, s.Title, a.Parameters, published[s.Name])
		}
		delete(published, s.Name)
	}
	if len(published) > 0 {
		t.Errorf("without a shape: %v", slices.Collect(maps.Keys(published)))
	}
}

// The page gets what package plan answers.
func TestPlan(t *testing.T) {
	c := serve(t, nil)
	asked := asking(t, "qwen3-1.7b", "batch", "3", "seq", "700", "clip", "true", "autocast", "false")
	asked.GPU, asked.Limit, asked.Settings, asked.Curve, asked.Name = "4090", "20GiB", "expandable_segments:True", 50, "dir/mine.json"
	model, err := model.Read(strings.NewReader(asked.Config))
	if err != nil {
		t.Fatal(err)
	}
	card, _ := cards.Find("4090")
	s, _ := settings.Parse(asked.Settings)
	q := plan.Question{Model: model, Settings: s, Conf: asked.Settings, Capacity: plan.Capacity{Card: &card, Limit: 20 << 30}, Points: 50}
	for _, o := range [][2]string{{"batch", "3"}, {"seq", "700"}, {"clip", "true"}} {
		if err := q.Options.Set(o[0], o[1]); err != nil {
			t.Fatal(err)
		}
	}
	want, err := plan.Ask(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	status, body := c.post("api/plan", asked)
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	got := read[plan.Document](t, body)
	if diff := cmp.Diff(want, got.Answer); diff != "" {
		t.Error(diff)
	}
	if got.File != "mine.json" || got.Options != "--batch 3 --seq 700 --clip" || got.Max != nil || got.Against != nil {
		t.Errorf("%q, %q", got.File, got.Options)
	}
	// Searches settle the options.
	asked.Max = "batch"
	status, body = c.post("api/plan", asked)
	got = read[plan.Document](t, body)
	if status != http.StatusOK || got.Max == nil || got.Max.Value < 1 || got.Options != fmt.Sprintf("--batch %d --seq 700 --clip", got.Max.Value) || !*got.Fits {
		t.Errorf("%d %.300s", status, body)
	}
	asked.Max, asked.Options["recompute"], asked.Options["seq"] = "", plan.Best, "2000"
	status, body = c.post("api/plan", asked)
	if got = read[plan.Document](t, body); status != http.StatusOK || got.Recompute == nil || !strings.Contains(got.Options, got.Recompute.Best.Flags) {
		t.Errorf("%d %.300s", status, body)
	}
}

// postLines asks for a plan in lines.
func (c *client) postLines(q planQuestion, got func(name string, data json.RawMessage)) (names []string) {
	c.t.Helper()
	status, body := c.post("api/plan?stream=1", q)
	if status != http.StatusOK {
		c.t.Fatalf("%d %s", status, body)
	}
	for text := range bytes.Lines(body) {
		for name, data := range read[line](c.t, text) {
			names = append(names, name)
			got(name, data)
		}
	}
	return slices.DeleteFunc(names, func(n string) bool { return n == "progress" || n == "waiting" })
}

// A plan is held against a run of the page: first the plan, then both. What
// cannot be compared leaves the plan.
func TestPlanAgainstARun(t *testing.T) {
	short.Skip(t)
	c := serve(t, nil, "plan/recordings/odd", "variety/stateonly")
	asked := asking(t, "qwen3-1.7b", "batch", "3", "seq", "1777", "dtype", "bf16")
	asked.Against, asked.Curve = 1, 300
	var plans []plan.Document
	var said []string
	hear := func(name string, data json.RawMessage) {
		switch name {
		case "plan":
			plans = append(plans, read[plan.Document](t, data))
		case "error":
			said = append(said, read[string](t, data))
		}
	}
	if names := c.postLines(asked, hear); !slices.Equal(names, []string{"work", "defaults", "plan", "plan", "end"}) {
		t.Fatalf("%q %q", names, said)
	}
	a := plans[1].Against
	if plans[0].Against != nil || a == nil || a.Covered != 1 || a.Missing != 0 || len(a.Curve.Planned) != 300 || len(a.Terms) == 0 || a.From != "build" {
		t.Fatalf("%+v", a)
	}
	for _, p := range a.Peaks {
		if off := float64(p.Planned)/float64(*p.Measured) - 1; off < -0.001 || off > 0.001 {
			t.Errorf("%s: planned %d, measured %d", p.Name, p.Planned, *p.Measured)
		}
	}
	plans[1].Against = nil
	if diff := cmp.Diff(plans[0], plans[1]); diff != "" {
		t.Error(diff)
	}
	status, body := c.post("api/plan", asked)
	if got := read[plan.Document](t, body); status != http.StatusOK || cmp.Diff(a, got.Against) != "" {
		t.Errorf("%d, otherwise than in lines", status)
	}
	for run, want := range map[int]string{2: "no events", 3: "there is no run 3"} {
		asked.Against, said = run, nil
		if names := c.postLines(asked, hear); !slices.Equal(names, []string{"work", "defaults", "plan", "error", "end"}) || !strings.Contains(said[0], want) {
			t.Errorf("%q %q", names, said)
		}
	}
}

func TestPlanRefuses(t *testing.T) {
	c := serve(t, nil)
	const llama = `{"model_type":"llama","hidden_size":512,"num_attention_heads":7}`
	change := func(f func(*planQuestion)) planQuestion {
		q := asking(t, "llama-3.2-1b", "batch", "1", "seq", "64")
		f(&q)
		return q
	}
	option := func(name, value string) planQuestion {
		return change(func(q *planQuestion) { q.Options[name] = value })
	}
	for want, q := range map[string]planQuestion{
		`the file is empty`:                                       change(func(q *planQuestion) { q.Config = "" }),
		`not JSON at byte`:                                        change(func(q *planQuestion) { q.Config = "{x" }),
		`model_type "rwkv" has no family here`:                    change(func(q *planQuestion) { q.Config = `{"model_type":"rwkv"}` }),
		`is not a multiple of`:                                    change(func(q *planQuestion) { q.Config = llama }),
		`there is no option "weights"`:                            option("weights", "/etc/passwd"),
		`batch "x": write a whole number from 1 to`:               option("batch", "x"),
		`shard "tp": write ddp:N`:                                 option("shard", "tp"),
		`clip "maybe": write true or false`:                       option("clip", "maybe"),
		`lora-targets is longer than 1.00 KiB`:                    option("lora-targets", strings.Repeat("q", maxValue+1)),
		`batch is missing: say how many sequences one step takes`: option("batch", ""),
		`attention flash with fp32: the kernel takes bf16 and fp16 only; use dtype bf16, autocast or attention sdpa`: change(func(q *planQuestion) { q.Options["dtype"], q.Options["attention"] = "fp32", "flash" }),
		`cache is for mode generate: leave it out`:                            option("cache", "static:512"),
		`gpu "h2000" is not known; did you mean h200`:                         change(func(q *planQuestion) { q.GPU = "h2000" }),
		`limit is "0": it is 0`:                                               change(func(q *planQuestion) { q.Limit = "0" }),
		`settings "max_split:1"`:                                              change(func(q *planQuestion) { q.Settings = "max_split:1" }),
		`settings is longer than`:                                             change(func(q *planQuestion) { q.Settings = strings.Repeat("s", maxValue+1) }),
		`head "image": llama has causal, sequence, token, question or reward`: change(func(q *planQuestion) { q.Head = "image" }),
		`max needs something to fit into: give gpu or limit`:                  change(func(q *planQuestion) { q.Max = "batch" }),
		`max "heads": write batch or seq`:                                     change(func(q *planQuestion) { q.Max, q.GPU = "heads", "h100" }),
		`recompute best needs something to fit into: give gpu or limit`:       option("recompute", "best"),
		`curve is -1`: change(func(q *planQuestion) { q.Curve = -1 }),
		`curve is 10000: write a whole number from 1 to 8192`:         change(func(q *planQuestion) { q.Curve = 10000 }),
		`this ashlar plans version 1: use the one that made the link`: change(func(q *planQuestion) { q.Version = 2 }),
		`give the name of the file`:                                   change(func(q *planQuestion) { q.Name = "a\nb" }),
	} {
		status, body := c.post("api/plan", q)
		refused(t, want, http.StatusBadRequest, status, body)
		var said struct{ Error string }
		if json.Unmarshal(body, &said) != nil || !strings.Contains(said.Error, want) || strings.Contains(said.Error, "--") || strings.Contains(said.Error, "\n") {
			t.Errorf("%q, want something with %q", said.Error, want)
		}
	}
	kind := []string{"Content-Type", "application/json"}
	for _, x := range []struct {
		what, method, path, body string
		status                   int
		headers                  []string
	}{
		{"no type", "POST", "api/plan", `{"version":1}`, 415, nil},
		{"a form", "POST", "api/plan", `{"version":1}`, 415, []string{"Content-Type", "text/plain"}},
		{"another page", "POST", "api/plan", `{"version":1}`, 403, append(kind, "Origin", "http://evil.example")},
		{"cross-site", "POST", "api/plan", `{"version":1}`, 403, append(kind, "Sec-Fetch-Site", "cross-site")},
		{"a method", "PUT", "api/plan", "", 405, nil},
		{"no document", "POST", "api/plan", `{"version"`, 400, kind},
		{"another field", "POST", "api/plan", `{"version":1,"trace":"/etc/passwd"}`, 400, kind},
		{"a parameter", "POST", "api/plan?stream=maybe", `{"version":1}`, 400, kind},
		{"a large config", "POST", "api/plan", `{"version":1,"config":"` + strings.Repeat("x", maxConfig+1) + `"}`, 413, kind},
		{"a large question", "POST", "api/plan", `{"version":1,"config":"` + strings.Repeat("x", maxPlanBytes) + `"}`, 413, kind},
	} {
		status, _, body := c.do(x.method, x.path, strings.NewReader(x.body), x.headers...)
		refused(t, x.what, x.status, status, body)
	}
}

// A long plan is stopped, and whoever asks next does not wait for it.
func TestPlanStops(t *testing.T) {
	c := serve(t, nil)
	asked := asking(t, "llama-3.1-70b", "batch", "8", "seq", "512", "generate", "4096")
	body, _ := json.Marshal(asked)
	reply, err := http.Post(c.base+"api/plan?stream=1", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	var names []string
	for d := json.NewDecoder(reply.Body); ; {
		var l line
		if err := d.Decode(&l); err != nil {
			break
		}
		for name, data := range l {
			names = append(names, name)
			if name == "work" {
				if status, _, said := c.do("DELETE", "api/work?work="+string(data), nil); status != http.StatusOK {
					t.Errorf("%d %s", status, said)
				}
			}
		}
	}
	if !slices.Equal(names, []string{"work", "defaults", "stopped", "end"}) {
		t.Errorf("%q", names)
	}
	if status, said := c.post("api/plan", asking(t, "gpt2", "batch", "1", "seq", "64")); status != http.StatusOK {
		t.Errorf("%d %s", status, said)
	}
}
