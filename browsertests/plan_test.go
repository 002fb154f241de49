package browsertests

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/browsertests/page"
	"github.com/ashlar-mem/ashlar/internal/units"
)

const odd = "../testdata/plan/recordings/odd.pickle.gz" // qwen3-1.7b, batch 3, sequences of 1,777 tokens, bf16

// planDocument is what ashlar plan --json says, as far as tests look at it.
type planDocument struct {
	Fits       *bool  `json:"fits"`
	Allocated  int64  `json:"peak_allocated_bytes"`
	Reserved   int64  `json:"peak_reserved_bytes"`
	Device     int64  `json:"peak_device_bytes"`
	Smallest   uint64 `json:"smallest_limit_bytes"`
	Headroom   *int64 `json:"headroom_bytes"`
	Phase      string `json:"binding_phase"`
	Components []struct {
		Name  string `json:"name"`
		Bytes int64  `json:"bytes"`
	} `json:"components"`
	Levers  []planLever `json:"levers"`
	Assumed []string    `json:"assumed"`
	Max     *struct {
		Value int `json:"value"`
	} `json:"max"`
	Against *struct {
		Covered float64 `json:"covered"`
		Peaks   []struct {
			Name     string `json:"name"`
			Planned  int64  `json:"planned_bytes"`
			Measured int64  `json:"measured_bytes"`
		} `json:"peaks"`
		Terms []struct {
			Change string `json:"change"`
			Bytes  int64  `json:"bytes"`
		} `json:"terms"`
	} `json:"against"`
}

type planLever struct {
	Flags  string `json:"flags"`
	Saving int64  `json:"saving_bytes"`
	Fits   *bool  `json:"fits"`
}

// readPlan reads a document of ashlar plan. A run that does not fit is an answer.
func readPlan(t *testing.T, cmd *exec.Cmd) planDocument {
	t.Helper()
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		t.Fatalf("%v: %v %s", cmd.Args, err, exit.Stderr)
	}
	var doc planDocument
	if err := json.Unmarshal(out, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// shapeFile writes the config of a model that comes with the page.
func (s *scene) shapeFile(name string) string {
	s.Helper()
	var config string
	s.value("fetch('api/plan').then((r) => r.json()).then((f) => JSON.stringify(f.shapes.find((x) => x.name === "+page.Quote(name)+").config))", &config)
	file := filepath.Join(s.TempDir(), name+".json")
	s.must(os.WriteFile(file, []byte(config), 0o600))
	return file
}

func planOf(t *testing.T, file, flags string) planDocument {
	t.Helper()
	return readPlan(t, exec.Command(stage.ashlar, append([]string{"plan", file, "--json"}, strings.Fields(flags)...)...))
}

const settledPlan = "document.querySelector('[data-result=plan]:not(.stale) [data-field=planned]') && !document.querySelector('[data-ask=stop]')"

// more opens what the form has under More, by the keyboard.
func (s *scene) more() {
	s.Helper()
	s.sees(".plan-more")
	if s.number("Number(document.querySelector('.plan-more').open)") == 1 {
		return
	}
	s.value("document.querySelector('.plan-more summary').focus()", nil)
	s.press(page.Enter)
	s.sees(".plan-more[open]")
}

// showsPlan compares what the page shows with what the command says.
func (s *scene) showsPlan(want planDocument) {
	s.Helper()
	s.until(settledPlan)
	for field, n := range map[string]int64{
		"peak_allocated_bytes": want.Allocated, "peak_reserved_bytes": want.Reserved, "peak_device_bytes": want.Device, "smallest_limit_bytes": int64(want.Smallest),
	} {
		if got := s.bytes(field); got != n {
			s.Errorf("%s is %d on the page, %d by ashlar plan", field, got, n)
		}
	}
	if want.Headroom != nil {
		if got := s.bytes("headroom"); got != max(*want.Headroom, -*want.Headroom) {
			s.Errorf("to spare or missing: %d on the page, %d by ashlar plan", got, *want.Headroom)
		}
	}
	fits := "null"
	if want.Fits != nil {
		fits = fmt.Sprint(*want.Fits)
	}
	if s.number("Number(document.querySelector('.plan-verdict').dataset.fits === "+page.Quote(fits)+")") != 1 {
		s.Errorf("ashlar plan says that fits is %s, the page %q", fits, s.text(".plan-verdict"))
	}
	if got := s.text("[data-field=binding_phase]"); got != want.Phase {
		s.Errorf("binds in %s, by ashlar plan in %s", got, want.Phase)
	}
	// Names with their bytes, in order.
	var parts, levers, terms []string
	for _, c := range want.Components {
		parts = append(parts, fmt.Sprint(c.Name, " ", c.Bytes))
	}
	for _, l := range want.Levers {
		levers = append(levers, fmt.Sprint(l.Flags, " ", l.Saving))
	}
	var got []string
	s.value("[...document.querySelectorAll('[data-component]')].map((r) => r.dataset.component + ' ' + r.querySelector('[data-field=bytes]').dataset.bytes).filter((t) => !t.endsWith(' 0'))", &got)
	if !slices.Equal(got, parts) {
		s.Errorf("components %q, by ashlar plan %q", got, parts)
	}
	s.value("[...document.querySelectorAll('[data-lever]')].map((r) => r.dataset.lever + ' ' + r.querySelector('[data-field=saving_bytes]').dataset.bytes)", &got)
	if !slices.Equal(got, levers) {
		s.Errorf("levers %q, by ashlar plan %q", got, levers)
	}
	s.value("[...document.querySelectorAll('[data-field=assumed] li:not(.muted)')].map((e) => e.textContent)", &terms)
	if !slices.Equal(terms, want.Assumed) {
		s.Errorf("assumed %q, by ashlar plan %q", terms, want.Assumed)
	}
}

// reach clicks what may be out of view.
func (s *scene) reach(selector string) {
	s.Helper()
	s.sees(selector)
	s.value("document.querySelector("+page.Quote(selector)+").scrollIntoView({block: 'center'})", nil)
	s.click(selector)
}

// Somebody without any file plans a model, sees that it does not fit, and presses
// the lever that helps; then goes back. All by the keyboard.
func TestPlanAndLever(t *testing.T) {
	s := open(t, "#//plan?v=1&shape=llama-3.2-1b&batch=1&seq=2048&attention=flash&gpu=a100-40")
	s.until(settledPlan)
	s.press("e")
	s.sees("input[name=batch]:focus")
	s.must(s.page.Type("input[name=batch]", "8"))
	file := s.shapeFile("llama-3.2-1b")
	flags := "--batch 8 --seq 2048 --attention flash --gpu a100-40"
	first := planOf(t, file, flags)
	if *first.Fits {
		t.Fatal("there is nothing to save")
	}
	s.until("document.querySelectorAll('.trail li').length === 2")
	s.showsPlan(first)
	if got, want := s.text("[data-field=smallest_limit_bytes]"), units.SizeUp(first.Smallest); got != want {
		t.Errorf("needs at least %s on the page, %s by ashlar plan", got, want)
	}
	if n := s.number("Number(document.querySelector('.plan-step').dataset.pieces)"); n < 500 {
		t.Errorf("the step has %v pieces", n)
	}
	if said := s.text("[data-field=failure]"); !strings.HasPrefix(said, "It fails on a ") {
		t.Errorf("%q", said)
	}

	// The lever that the answer names first is the cheapest with which it fits.
	lever := "--loss chunked:1024"
	if got := s.text("[data-first-lever] + code"); got != lever || !slices.ContainsFunc(first.Levers, func(l planLever) bool { return l.Flags == lever && *l.Fits }) {
		t.Errorf("the first lever is %q", got)
	}
	s.value("document.querySelector('[data-first-lever]').focus()", nil)
	s.press(page.Enter)
	s.until("document.querySelectorAll('.trail li').length === 3")
	second := planOf(t, file, flags+" "+lever)
	if !*second.Fits {
		t.Fatal("the lever does not save it")
	}
	s.showsPlan(second)
	s.until("document.activeElement?.classList.contains('plan-verdict')") // it says what the lever did
	if got := s.number("Number(document.querySelector('[data-field=\"change.peak_allocated_bytes\"]').dataset.delta)"); int64(got) != second.Allocated-first.Allocated {
		t.Errorf("the change is %v, by ashlar plan %d", got, second.Allocated-first.Allocated)
	}
	s.hash("loss=chunked%3A1024")
	if got := s.number("Number(document.querySelector('input[name=loss]').value === 'chunked:1024')"); got != 1 {
		t.Error("the form does not have the lever")
	}

	at := func(n int) string {
		return fmt.Sprintf("document.querySelector('[data-field=planned]').dataset.at === '%d'", n)
	}
	s.press("u")
	s.until(at(1))
	s.showsPlan(first)
	s.value("history.back()", nil)
	s.until(at(2))
	s.showsPlan(second)
	// Another way from the first plan, by the mouse, then a setting of the allocator.
	s.click("[data-step='1']")
	s.until(at(1))
	s.reach("[data-lever='--batch 4 --accumulate 2']")
	s.until(at(2))
	s.showsPlan(planOf(t, file, "--batch 4 --accumulate 2 --seq 2048 --attention flash --gpu a100-40"))
	s.reach("[data-lever='--settings expandable_segments:True']")
	s.until(at(3))
	s.showsPlan(planOf(t, file, "--batch 4 --accumulate 2 --seq 2048 --attention flash --gpu a100-40 --settings expandable_segments:True"))
	var labels []string
	s.value("[...document.querySelectorAll('.trail-label')].map((e) => e.textContent)", &labels)
	if want := []string{"llama-3.2-1b, batch 1, seq 2048, attention flash, a100-40", "batch 8", "batch 4, accumulate 2", "settings expandable_segments:True"}; !slices.Equal(labels, want) {
		t.Errorf("%q", labels)
	}
}

// Switches, words with numbers, what is generated, what is searched: the form
// asks what the command line says, which it shows and which a shell takes.
func TestPlanCommandLine(t *testing.T) {
	for _, x := range []struct {
		shape string
		fill  func(s *scene)
		want  string // the command line
	}{
		{"qwen3-1.7b", func(s *scene) {
			s.must(s.page.Type("input[name=batch]", "16"))
			s.must(s.page.Type("input[name=seq]", "700"))
			s.must(s.page.Pick("select[name=gpu]", "size"))
			s.must(s.page.Type("input[name=gpu-size]", "RTX 4090"))
			s.more()
			s.must(s.page.Type("input[name=limit]", "20 GiB"))
			s.reach("input[name=clip]")
			s.must(s.page.Type("input[name=recompute]", "every:7"))
			s.must(s.page.Type("input[name=settings]", "max_split_size_mb:128"))
		}, "ashlar plan qwen3-1.7b.json --batch 16 --seq 700 --clip --recompute every:7 --gpu 'RTX 4090' --limit '20 GiB' --settings max_split_size_mb:128"},
		{"gemma-3-1b", func(s *scene) {
			s.click("[data-choice=serve]")
			s.must(s.page.Type("input[name=generate]", "20"))
			s.must(s.page.Type("input[name=seq]", "300"))
			s.must(s.page.Pick("select[name=dtype]", "fp16"))
		}, "ashlar plan gemma-3-1b.json --batch 4 --seq 300 --dtype fp16 --mode generate --generate 20 --gpu h100"},
		{"gpt2", func(s *scene) {
			s.must(s.page.Pick("select[name=gpu]", "3060"))
			s.click("[data-ask=max-batch]")
		}, "ashlar plan gpt2.json --seq 1024 --gpu 3060 --max batch"},
		{"vit-large", func(*scene) {}, "ashlar plan vit-large.json --batch 32 --gpu h100"},
	} {
		s := open(t, "#//plan")
		s.hints = []string{"400 (Bad Request)"} // of an empty batch
		s.sees(".plan-form")
		// Nothing is set yet that the next model would keep.
		s.must(s.page.Type("input[name=batch]", ""))
		s.must(s.page.Type("input[name=seq]", ""))
		s.must(s.page.Pick("select[name=shape]", x.shape))
		x.fill(s)
		s.until(settledPlan)
		file := s.shapeFile(x.shape)
		inShell := func(line string) planDocument {
			shell := exec.Command("sh", "-c", `ashlar() { "$ASHLAR" "$@" --json; }; `+line)
			shell.Dir, shell.Env = filepath.Dir(file), append(os.Environ(), "ASHLAR="+stage.ashlar)
			return readPlan(t, shell)
		}
		want := inShell(x.want)
		s.showsPlan(want)
		line := x.want
		if want.Max != nil { // the form has what was found
			line = fmt.Sprintf("ashlar plan gpt2.json --batch %d --seq 1024 --gpu 3060", want.Max.Value)
		}
		if got := s.text("[data-field=command]"); got != line || inShell(line).Reserved != want.Reserved {
			t.Errorf("%q, want %q", got, line)
		}
		if want.Max != nil {
			if got := s.number("Number(document.querySelector('[data-field=largest]').dataset.value)"); int(got) != want.Max.Value || want.Max.Value < 2 {
				t.Errorf("the largest batch is %v, by ashlar plan %d", got, want.Max.Value)
			}
			s.until(fmt.Sprintf("document.querySelector('input[name=batch]').value === '%d'", want.Max.Value)) // to go on from
		}
	}
}

// What is wrong with a config is said in one line, beside a way back.
func TestPlanErrors(t *testing.T) {
	s := open(t, "#//plan?v=1&shape=llama-3.2-1b&batch=1&seq=128")
	s.until(settledPlan)
	s.hints = []string{"400 (Bad Request)"}
	s.click(".plan-model summary")
	s.must(s.page.Type("textarea[name=config]", `{"model_type": "llama", "hidden_size": 512, "num_attention_heads": 8, "num_key_value_heads": 3}`))
	s.sees("[data-field=plan-trouble]")
	if said := s.text("[data-field=plan-trouble]"); said != "num_attention_heads 8 is not a multiple of num_key_value_heads 3" {
		t.Errorf("%q", said)
	}
	if got := s.text("[data-result=plan].stale [data-field=stale]"); got != "for llama-3.2-1b" {
		t.Errorf("the plan under the error is %q", got)
	}
	s.click("[data-act=undo]")
	s.until(settledPlan + " && !document.querySelector('[data-field=plan-trouble]')")
	s.until("document.querySelector('select[name=shape]').value === 'llama-3.2-1b'")
	// An option; its field is marked.
	s.more()
	s.must(s.page.Type("input[name=shard]", "tp:3"))
	s.sees("[data-field=plan-trouble]")
	s.sees("input[name=shard][aria-invalid]")
	if said := s.text("[data-field=plan-trouble]"); !strings.HasPrefix(said, "shard tp:3: 32 heads cannot be divided among 3 ranks; write ") {
		t.Errorf("%q", said)
	}
	// A search without anything to fit into.
	s.must(s.page.Type("input[name=shard]", ""))
	s.until(settledPlan)
	s.click("[data-ask=max-seq]")
	s.until("document.querySelector('[data-field=plan-trouble]')?.textContent === 'max needs something to fit into: give gpu or limit'")
	s.until(settledPlan) // which the search was not
}

// A plan is held against the recording of the run; what is no recording of it is
// told, and the plan stays.
func TestPlanAgainst(t *testing.T) {
	s := open(t, "#/1/plan?v=1&shape=qwen3-1.7b&batch=3&seq=1777&dtype=bf16", odd, varlen, state)
	s.until(settledPlan)
	s.must(s.page.Pick("select[name=against]", "1"))
	s.sees("[data-panel=terms]")
	want := planOf(t, s.shapeFile("qwen3-1.7b"), "--batch 3 --seq 1777 --dtype bf16 --against "+odd)
	s.showsPlan(want)
	a := want.Against
	if got := s.number("Number(document.querySelector('[data-field=covered]').dataset.covered)"); got != a.Covered || got < 0.99 {
		t.Errorf("%v of the recording is planned, by ashlar plan %v", got, a.Covered)
	}
	for _, p := range a.Peaks {
		var got [2]int64
		s.value("['planned', 'measured'].map((f) => Number(document.querySelector('[data-peak="+p.Name+"] [data-field=' + f + ']').dataset.bytes))", &got)
		if got != [2]int64{p.Planned, p.Measured} {
			t.Errorf("%s: %v on the page, %+v by ashlar plan", p.Name, got, p)
		}
	}
	s.reach("[data-panel=terms] [data-choice=matched]")
	var bytes, listed []int64
	for _, x := range a.Terms {
		if x.Change == "matched" {
			bytes = append(bytes, x.Bytes)
		}
	}
	s.value("[...document.querySelectorAll('[data-term=matched] [data-field=bytes]')].map((e) => Number(e.dataset.bytes))", &listed)
	if n := min(len(bytes), 40); n == 0 || !slices.Equal(listed, bytes[:n]) {
		t.Errorf("%d terms on the page, %d by ashlar plan", len(listed), len(bytes))
	}
	if n := s.number("Number(document.querySelector('[data-panel=against] .curve').dataset.lines)"); n != 2 {
		t.Errorf("%v curves", n)
	}
	if line := s.text("[data-field=command]"); !strings.HasSuffix(line, " --against "+odd) {
		t.Errorf("%q", line)
	}
	// No new plan was made for it.
	if n := s.number("document.querySelectorAll('.trail li').length"); n != 1 {
		t.Errorf("%v plans", n)
	}
	s.must(s.page.Pick("select[name=shape]", "gpt2"))
	s.must(s.page.Type("input[name=seq]", "64"))
	s.press(page.Enter)
	s.until("document.querySelector('[data-panel=against]')?.innerText.includes('the recording seems to be of another model, batch or sequence')")
	another := planOf(t, s.shapeFile("gpt2"), "--batch 3 --seq 64 --dtype bf16")
	s.showsPlan(another)
	s.must(s.page.Pick("select[name=against]", ""))
	s.until("!document.querySelector('[data-panel=against]')")
	// A recording without events: the plan stays.
	s.must(s.page.Go("#/1/plan?v=1&shape=gpt2&batch=3&seq=64&dtype=bf16&against=3"))
	s.until("document.querySelector('[data-field=against-trouble]')?.innerText.includes('the file has no events')")
	s.showsPlan(another)
}

// A link holds the plan, a config of one's own among it. What somebody made up is
// not asked.
func TestPlanLinks(t *testing.T) {
	const config = `{"model_type": "qwen3", "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 4, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 5000, "tie_word_embeddings": true}`
	s := open(t, "#//plan")
	s.sees(".plan-form")
	// The file is dropped on the page.
	s.value(`(() => {
		const d = new DataTransfer();
		d.items.add(new File([`+page.Quote(config)+`], 'mine.json', {type: 'application/json'}));
		dispatchEvent(new DragEvent('drop', {dataTransfer: d}));
	})()`, nil)
	s.until("document.querySelector('textarea[name=config]').value.includes('3072')")
	s.must(s.page.Type("input[name=seq]", "200"))
	s.more()
	s.must(s.page.Type("input[name=limit]", "2GiB"))
	s.press(page.Enter)
	file := filepath.Join(t.TempDir(), "mine.json")
	s.must(os.WriteFile(file, []byte(config), 0o600))
	want := planOf(t, file, "--batch 1 --seq 200 --gpu h100 --limit 2GiB")
	s.showsPlan(want)
	if line := s.text("[data-field=command]"); line != "ashlar plan mine.json --batch 1 --seq 200 --gpu h100 --limit 2GiB" {
		t.Errorf("%q", line)
	}
	s.reach("[data-act=share]")
	s.sees("dialog[open] [data-copy]")
	var link string
	s.value("document.querySelector('dialog[open] [data-copy]').dataset.copy", &link)
	if !strings.HasPrefix(link, "#//plan?") { // nothing of this machine is in it
		t.Fatalf("%q", link)
	}
	other := open(t, "#//plan") // of another machine it is pasted
	other.until(settledPlan)
	other.press("s")
	other.sees("dialog[open] textarea")
	other.value("(() => { const e = document.querySelector('dialog[open] textarea'); e.value = "+page.Quote("http://127.0.0.1:9/elsewhere/"+link)+"; e.dispatchEvent(new Event('input', {bubbles: true})); })()", nil)
	other.click("[data-act=open]")
	other.showsPlan(want)

	// A name that would be a flag, and one that a shell would take for more.
	for name, want := range map[string]string{"--trace=x.pickle": "./--trace=x.pickle", "$(touch x) y.json": "'$(touch x) y.json'"} {
		other.must(other.page.Go("#//plan?" + url.Values{"v": {"1"}, "config": {config}, "name": {name}, "batch": {"1"}, "seq": {"8"}}.Encode()))
		other.until("document.querySelector('[data-field=command]')?.textContent === " + page.Quote("ashlar plan "+want+" --batch 1 --seq 8"))
	}

	long := url.Values{"v": {"1"}, "shape": {"gpt2"}, "batch": {strings.Repeat("9", 2000)}}
	for _, x := range [][2]string{
		{"v=2&shape=gpt2", "The link is of version 2; this ashlar plans version 1."},
		{"shape=gpt2", "The link is of version none"},
		{"v=1&shape=gpt9", `There is no model "gpt9" here`},
		{"v=1&shape=gpt2&weights=/etc/passwd", `The link has "weights", which is no option of a plan.`},
		{long.Encode(), "What the link has for batch is too long."},
	} {
		other.must(other.page.Go("#//plan?" + x[0]))
		other.until("document.querySelector('.plan-main .trouble')?.textContent.includes(" + page.Quote(x[1]) + ")")
		if other.number("document.querySelectorAll('.plan-verdict, [data-ask=stop]').length") != 0 {
			t.Errorf("%s was asked", x[0])
		}
	}
}

// A long plan can be stopped.
func TestPlanStops(t *testing.T) {
	s := open(t, "#//plan?v=1&shape=llama-3.1-70b&batch=8&seq=512&generate=4096")
	s.sees("[data-ask=stop]")
	s.press("s")
	s.until("!document.querySelector('[data-ask=stop]')")
	if said := s.text(".plan-main"); !strings.Contains(said, "Stopped before there was an answer.") {
		t.Errorf("%q", said)
	}
	s.must(s.page.Pick("select[name=shape]", "gpt2"))
	s.must(s.page.Type("input[name=generate]", "5"))
	s.press(page.Enter)
	s.showsPlan(planOf(t, s.shapeFile("gpt2"), "--batch 8 --seq 512 --generate 5"))
}

// The screen fits a small window, with all its panels, and the buttons that ask
// are in view.
func TestPlanSmallWindow(t *testing.T) {
	s := openAt(t, "#/1/plan?v=1&shape=qwen3-1.7b&batch=3&seq=1777&dtype=bf16&gpu=h200&against=1", 1280, 720, false, odd, varlen)
	s.sees("[data-panel=terms]")
	var wide []string
	s.value("[...document.querySelectorAll('body, main, header, .plan, .plan-main, .plan-fields, .plan-asks, .side, .panel, .levers button')].filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.className || e.tagName)", &wide)
	if len(wide) > 0 {
		t.Errorf("too wide: %v", wide)
	}
	if n := s.number("document.documentElement.scrollHeight"); n > 720 {
		t.Errorf("the page is %v high", n)
	}
	for _, ask := range []string{"max-batch", "max-seq"} {
		if b, err := s.page.Box("[data-ask=" + ask + "]"); err != nil || b[1]+b[3] > 720 || b[0] < 0 || b[0]+b[2] > 300 {
			t.Errorf("%s is at %v, %v", ask, b, err)
		}
	}
}
