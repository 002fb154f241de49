package view

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/answer/policies"
	"github.com/ashlar-mem/ashlar/internal/answer/tune"
	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
)

const fragmented = "snapshots/gpt2_varlen-tight-default" // died of fragmentation

// line is one line of an answer in lines.
type line map[string]json.RawMessage

// lines asks for an answer in lines; got may stop the reading.
func (c *client) lines(path string, got func(line) bool) {
	c.t.Helper()
	reply, err := http.Get(c.base + path)
	if err != nil {
		c.t.Fatal(err)
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK || reply.Header.Get("Content-Type") != "application/x-ndjson" {
		c.t.Fatalf("%s: %d, %s", path, reply.StatusCode, reply.Header)
	}
	in := bufio.NewScanner(reply.Body)
	in.Buffer(nil, 64<<20)
	for in.Scan() {
		var l line
		if err := json.Unmarshal(in.Bytes(), &l); err != nil || len(l) != 1 {
			c.t.Fatalf("%s: %v in %.200s", path, err, in.Text())
		}
		if !got(l) {
			return
		}
	}
	if in.Err() != nil {
		c.t.Fatal(in.Err())
	}
}

// read decodes a member of a line.
func read[T any](t testing.TB, data json.RawMessage) (v T) {
	t.Helper()
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("%v in %.200s", err, data)
	}
	return v
}

// What the page gets is what package whatif answers, and for each of the settings
// what package tune finds.
func TestWhatIfInLines(t *testing.T) {
	c := serve(t, nil, fragmented)
	q := url.Values{"run": {"1"}, "set": {"expandable_segments:True", "", "max_split_size_mb:128"}, "curve": {"100"}}
	var plain whatif.Answer
	c.json("api/whatif?"+q.Encode(), &plain)
	if len(plain.Results) != 4 || len(plain.Results[0].Curve.Event) != 100 || !plain.Results[0].Fails || plain.Results[1].Fails {
		t.Fatalf("%+v", plain)
	}
	q.Set("stream", "1")
	var order []string
	var streamed whatif.Answer
	choices := map[int]*tune.Choice{}
	c.lines("api/whatif?"+q.Encode(), func(l line) bool {
		for name, data := range l {
			order = append(order, name)
			switch name {
			case "whatif":
				streamed = read[whatif.Answer](t, data)
			case "choice":
				got := read[choice](t, data)
				choices[got.Result] = got.Choice
			case "error":
				t.Errorf("%s", data)
			}
		}
		return true
	})
	if diff := cmp.Diff(plain, streamed); diff != "" {
		t.Error(diff)
	}
	if order[0] != "work" || order[len(order)-1] != "end" || slices.Index(order, "whatif") > slices.Index(order, "choice") {
		t.Errorf("%q", order)
	}
	r, err := c.s.runs.ready(1)
	if err != nil {
		t.Fatal(err)
	}
	of, err := r.checked(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if testing.Short() {
		return // a search is long
	}
	// Whatever the search names has the figures that the page shows for it.
	found, err := tune.Search(t.Context(), of, tune.Options{DeviceMemory: plain.DeviceMemory.Value()})
	if err != nil {
		t.Fatal(err)
	}
	same := 0
	for _, f := range append(found.Others, found.Current, found.Recommended) {
		for _, got := range choices {
			if got.Settings == f.Settings.String() {
				same++
				want := tune.NewChoice(of, f)
				want.Recorded, want.Worst = got.Recorded, nil // the page tries no variations
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
			}
		}
	}
	if len(choices) != 4 || same == 0 || !choices[0].Recorded || choices[1].Export != "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True" {
		t.Errorf("%d choices, %d of them named by tune: %+v", len(choices), same, choices)
	}
	for i, got := range choices {
		if got.SmallestLimit == nil || got.UnderLimit != nil {
			t.Fatalf("%d: %+v", i, got)
		}
		// The smallest limit passes, and 2 MiB less does not.
		set := []string{"", "expandable_segments:True", "", "max_split_size_mb:128"}[i]
		for less, fails := range map[uint64]bool{0: false, 2 << 20: true} {
			var a whatif.Answer
			c.json("api/whatif?"+url.Values{"run": {"1"}, "set": {set}, "limit": {fmt.Sprint(*got.SmallestLimit - less)}}.Encode(), &a)
			if a.Results[1].Fails != fails {
				t.Errorf("%q under its smallest limit, less %d: fails %v", set, less, a.Results[1].Fails)
			}
		}
	}
}

// What is wrong is said in words of the page.
func TestWhatIfRefuses(t *testing.T) {
	c := serve(t, nil, fragmented, "variety/stateonly")
	many := "run=1" + strings.Repeat("&set=", maxVariants+1)
	for path, want := range map[string]string{
		"whatif?run=1":                                        "add settings, or a limit",
		"whatif?run=1&set=nonsense":                           `settings "nonsense", token 1`,
		"whatif?run=1&set=&limit=0":                           `limit is "0": it is 0; write none for no limit`,
		"whatif?run=1&set=&device_memory=x":                   `device_memory is "x"`,
		"whatif?run=1&set=&on_oom=maybe":                      "write die, skip",
		"whatif?run=1&set=&curve=99999":                       "from 1 to 8192",
		"whatif?" + many:                                      "let tune search",
		"whatif?run=1&set=backend:cudaMallocAsync":            "another allocator",
		"tune?run=1&budget=-1s":                               "write a time such as 10s",
		"tune?run=1&budget=1h":                                "at most 10m0s",
		"tune?run=1&goal=speed":                               "write reserved, limit or calls",
		"tune?run=1&limit=x":                                  `limit is "x"`,
		"segments?run=1&event=5&set=nonsense":                 `settings "nonsense", token 1`,
		"segments?run=1&set=&limit=x":                         `limit is "x"`,
		"segments?run=1&set=backend:cudaMallocAsync&event=10": "another allocator",
	} {
		status, _, body := c.do("GET", "api/"+path, nil)
		refused(t, path, http.StatusBadRequest, status, body)
		if text := string(body); !strings.Contains(strings.ReplaceAll(text, `\"`, `"`), want) || strings.Contains(text, "--") {
			t.Errorf("%s: %s, want %s", path, text, want)
		}
	}
	for _, path := range []string{"whatif?run=2&set=", "tune?run=2", "segments?run=2&recorded=1"} {
		status, _, body := c.do("GET", "api/"+path, nil)
		refused(t, path, http.StatusUnprocessableEntity, status, body)
		if !strings.Contains(string(body), "no events") {
			t.Errorf("%s: %s", path, body)
		}
	}
}

// In lines, settings that cannot be tried are refused for themselves: those that
// cannot be read, and those that this recording cannot be replayed with.
func TestWhatIfRefusesOne(t *testing.T) {
	c := serve(t, nil, fragmented)
	q := url.Values{"run": {"1"}, "stream": {"1"}, "set": {"max_split:1", "expandable_segments:True", "backend:cudaMallocAsync"}}
	var tried []string
	refused := map[string]string{}
	c.lines("api/whatif?"+q.Encode(), func(l line) bool {
		if data, ok := l["refused"]; ok {
			r := read[refusal](t, data)
			refused[r.Set] = r.Error
		}
		if data, ok := l["whatif"]; ok {
			for _, r := range read[whatif.Answer](t, data).Results {
				tried = append(tried, r.Settings)
			}
		}
		if data, ok := l["error"]; ok {
			t.Errorf("%s", data)
		}
		return true
	})
	if !slices.Equal(tried, []string{"", "expandable_segments:True"}) {
		t.Errorf("tried %q", tried)
	}
	if len(refused) != 2 || !strings.Contains(refused["max_split:1"], "token 1") || !strings.Contains(refused["backend:cudaMallocAsync"], "another allocator") {
		t.Errorf("refused %q", refused)
	}
}

// Tune that is stopped says what it knows.
func TestTuneStops(t *testing.T) {
	c := serve(t, nil, "snapshots/gpt2_varlen-tight-default")
	var a *tune.Answer
	var work string
	stopped := false
	c.lines("api/tune?run=1&budget=5m&stream=1", func(l line) bool {
		if data, ok := l["work"]; ok {
			work = string(data)
		}
		if data, ok := l["progress"]; ok {
			p := read[progress](t, data)
			if p.Done < 1 || p.Budget != 300 || p.Seconds > 300 {
				t.Errorf("%+v", p)
			}
			if p.Done < 20 {
				return true // before the recorded settings are measured there is nothing to say
			}
			if status, _, body := c.do("DELETE", "api/work?work="+work, nil); status != http.StatusOK {
				t.Errorf("%d %s", status, body)
			}
			stopped = true
		}
		if data, ok := l["tune"]; ok {
			got := read[tune.Answer](t, data)
			a = &got
		}
		return true
	})
	if a == nil || !stopped || !a.Interrupted || a.Evaluated == 0 || a.Current == nil || len(a.Others) == 0 && a.Recommended.Recorded {
		t.Errorf("%+v", a)
	}
	// What is over cannot be stopped, which is no fault; what is no number is one.
	status, _, _ := c.do("DELETE", "api/work?work=77", nil)
	if status != http.StatusOK {
		t.Error(status)
	}
	for _, path := range []string{"api/work", "api/work?work=x"} {
		status, _, body := c.do("DELETE", path, nil)
		refused(t, path, http.StatusBadRequest, status, body)
	}
	status, _, body := c.do("GET", "api/work?work=1", nil)
	refused(t, "GET", http.StatusMethodNotAllowed, status, body)
	status, _, body = c.do("DELETE", "api/work?work=1", nil, "Sec-Fetch-Site", "cross-site")
	refused(t, "from another page", http.StatusForbidden, status, body)
}

// Whoever goes away stops the work: the next one has the cores. Otherwise this
// test waits for ten minutes and is ended.
func TestGoneStopsWork(t *testing.T) {
	c := serve(t, nil, "snapshots/gpt2_varlen-tight-default")
	c.lines("api/tune?run=1&budget=10m&stream=1", func(l line) bool { return l["progress"] == nil })
	c.get("api/whatif?run=1&set=")
}

// Under the recorded settings the map of a variant is that of the recording, but
// for the addresses.
func TestVariantOfRecordedSettings(t *testing.T) {
	for _, name := range []string{fragmented, "snapshots/streams_graphs-tight-default", "variety/expand_tight", "variety/ring"} {
		c := serve(t, nil, name)
		r, err := c.s.runs.ready(1)
		if err != nil {
			t.Fatal(err)
		}
		moments := []int{-1, r.events() - 1}
		for _, m := range r.peaks.OOMs {
			moments = append(moments, m.Index)
		}
		rng := rand.New(rand.NewPCG(5, 5))
		// After an allocation: other calls are several events, and frees that wait
		// are completed by the next allocation.
		for len(moments) < 20 {
			if event := rng.IntN(r.events()); r.trace.Events.Action.At(event) == alloc.ActionAlloc {
				moments = append(moments, event)
			}
		}
		for _, event := range moments {
			var got, want segmentMap
			c.json(fmt.Sprintf("api/segments?run=1&event=%d", event), &want)
			c.json(fmt.Sprintf("api/segments?run=1&recorded=1&event=%d", event), &got)
			if got.Reserved != want.Reserved || got.Allocated != want.Allocated || got.Pending != want.Pending || got.Free != want.Free || got.LargestFree != want.LargestFree {
				t.Errorf("%s after event %d: reserved %d, allocated %d, pending %d, free %d, largest %d; recorded %d, %d, %d, %d, %d", name, event,
					got.Reserved, got.Allocated, got.Pending, got.Free, got.LargestFree, want.Reserved, want.Allocated, want.Pending, want.Free, want.LargestFree)
			}
			if diff := cmp.Diff(owners(&want), owners(&got)); diff != "" {
				t.Errorf("%s after event %d: whose the blocks are:\n%s", name, event, diff)
			}
			if (got.Request == nil) != (want.Request == nil) || got.Request != nil && (got.Request.Segment != want.Request.Segment || got.Request.Size != want.Request.Size) {
				t.Errorf("%s after event %d: request %+v, recorded %+v", name, event, got.Request, want.Request)
			}
		}
	}
}

// owners are the sizes of the allocated blocks by whose they are.
func owners(s *segmentMap) map[int64]int64 {
	out := map[int64]int64{}
	for _, g := range s.Segments {
		for _, b := range g.Blocks {
			if b[2] == 1 {
				out[b[3]] = b[1]
			}
		}
	}
	return out
}

// A variant at its failure and at its peak has the numbers of the what-if.
func TestVariantAtFailureAndPeak(t *testing.T) {
	c := serve(t, nil, fragmented)
	for _, set := range []string{"", "max_split_size_mb:128", "expandable_segments:True", "roundup_power2_divisions:4"} {
		for _, limit := range []string{"", "9GiB"} {
			q := url.Values{"run": {"1"}, "set": {set}, "limit": {limit}}
			var a whatif.Answer
			c.json("api/whatif?"+q.Encode(), &a)
			r := a.Results[1]
			var s segmentMap
			q.Set("event", fmt.Sprint(*r.PeakReservedAt.Event))
			c.json("api/segments?"+q.Encode(), &s)
			if s.Reserved != r.PeakReserved {
				t.Errorf("%q, limit %q: %d reserved at the peak, by what-if %d", set, limit, s.Reserved, r.PeakReserved)
			}
			f := r.First
			if f == nil {
				continue
			}
			q.Set("event", fmt.Sprint(*f.Event))
			c.json("api/segments?"+q.Encode(), &s)
			if s.Reserved != f.Reserved || s.Allocated != f.Allocated || s.LargestFree != f.LargestFree || s.Failed == nil || *s.Failed != *f.Event {
				t.Errorf("%q, limit %q: at the failure %+v, by what-if %+v", set, limit, s.Reserved, f)
			}
			if s.Request == nil || s.Request.Size != f.Size || s.Request.Segment != f.Segment || s.Request.Event != *f.Event {
				t.Errorf("%q, limit %q: request %+v, by what-if %+v", set, limit, s.Request, f)
			}
		}
	}
}

// A change of the program has a curve: that of the recording without what the
// change saves.
func TestFixCurve(t *testing.T) {
	c := serve(t, func(s *Server) { s.explain = explainDocument }, "snapshots/leak_graph-tight-default")
	var d struct {
		Fixes []struct {
			Kind  string  `json:"kind"`
			Code  string  `json:"code"`
			Bytes *uint64 `json:"bytes"`
		} `json:"fixes"`
	}
	if err := json.Unmarshal(c.get("api/explain?run=1"), &d); err != nil || d.Fixes[0].Code == "" || d.Fixes[0].Bytes == nil {
		t.Fatalf("%v, %+v", err, d)
	}
	var f fixCurve
	if err := json.Unmarshal(c.get("api/fix?run=1&fix=0"), &f); err != nil {
		t.Fatal(err)
	}
	run := c.s.runs.entries[0].run
	n := len(f.Event)
	if n < 1000 || len(f.Reserved) != n || len(f.Active) != n || f.Event[n-1] >= run.events() || f.Event[n-1] < run.events()*9/10 {
		t.Fatalf("%d events, the last is %v", n, f.Event[max(0, n-1):])
	}
	for i, e := range f.Event {
		if f.Active[i] > f.Reserved[i] || i > 0 && e < f.Event[i-1] {
			t.Fatalf("piece %d: event %d, %d active of %d", i, e, f.Active[i], f.Reserved[i])
		}
	}
	if before := run.course.At(f.Event[n-1]).Active; f.Active[n-1]+*d.Fixes[0].Bytes*9/10 > before {
		t.Errorf("%d are active with the fix, %d without, and it saves %d", f.Active[n-1], before, *d.Fixes[0].Bytes)
	}
	for _, fix := range []string{"1", "99"} { // a setting; none
		status, _, body := c.do("GET", "api/fix?run=1&fix="+fix, nil)
		refused(t, fix, http.StatusNotFound, status, body)
	}
}

// Other allocators stand among the settings: behind them, with curves and the smallest
// limits that package policies finds.
func TestWhatIfOfPolicies(t *testing.T) {
	c := serve(t, nil, "snapshots/streams_graphs-default")
	q := url.Values{"run": {"1"}, "set": {"best-fit", "expandable_segments:True", "static-plan", "managed"}, "curve": {"50"}, "stream": {"1"}}
	var answer whatif.Answer
	refused := ""
	needs := map[int]*tune.Choice{}
	c.lines("api/whatif?"+q.Encode(), func(l line) bool {
		for name, data := range l {
			switch name {
			case "refused":
				refused = read[refusal](t, data).Set
			case "whatif":
				answer = read[whatif.Answer](t, data)
			case "choice":
				got := read[choice](t, data)
				needs[got.Result] = got.Choice
			case "error":
				t.Errorf("%s", data)
			}
		}
		return true
	})
	var names []string
	for _, r := range answer.Results {
		names = append(names, r.Settings)
		if r.Curve == nil || len(r.Curve.Reserved) != 50 || slices.Max(r.Curve.Reserved) != r.PeakReserved {
			t.Errorf("%s: %+v", r.Settings, r.Curve)
		}
	}
	if refused != "managed" || !slices.Equal(names[1:], []string{"expandable_segments:True", "best-fit", "static-plan"}) || answer.Results[2].Export != "" {
		t.Errorf("refused %q, results %q", refused, names)
	}
	of, err := loadRun(t, "snapshots/streams_graphs-default").checked(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p, err := policies.Ask(t.Context(), of, policies.Question{Policies: []string{"best-fit"}})
	if err != nil {
		t.Fatal(err)
	}
	want := p.Results[0]
	if got := needs[2]; got == nil || *got.SmallestLimit != *want.SmallestLimit || answer.Results[2].PeakReserved != *want.PeakReserved {
		t.Errorf("best-fit: %+v, want %+v", got, want)
	}
}
