package browsertests

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/browsertests/page"
)

// watch looks at every frame and after every change of the page whether a result
// that is not greyed stands beside inputs that it was not made for. Made is
// JavaScript for what a result says it is for, and wanted for what the form has.
func (s *scene) watch(result, made, wanted string) {
	s.Helper()
	s.value(`(() => {
		window.watched = { wrong: [], fresh: 0, stale: 0 };
		const look = () => {
			const r = document.querySelector(`+page.Quote(result)+`);
			if (!r) return;
			const stale = r.classList.contains('stale');
			const grey = [...r.children].filter((e) => !e.classList.contains('stale-note')).every((e) => getComputedStyle(e).opacity <= 0.5);
			const [made, wanted] = [(`+made+`)(r), (`+wanted+`)()];
			if (stale) watched.stale++; else watched.fresh++;
			if (stale && !grey) watched.wrong.push('stale, and not greyed');
			if (stale && !r.querySelector('[data-field=stale]').textContent.startsWith('for ')) watched.wrong.push('stale, and for nothing');
			if (!stale && made !== wanted) watched.wrong.push(made + ' beside ' + wanted);
		};
		const frame = () => { look(); requestAnimationFrame(frame); };
		frame();
		new MutationObserver(look).observe(document.body, { subtree: true, childList: true, attributes: true, characterData: true });
	})()`, nil)
}

// watched fails if what is watched was wrong at any moment, or if nothing was
// seen.
func (s *scene) watched() {
	s.Helper()
	var got struct {
		Wrong        []string `json:"wrong"`
		Fresh, Stale int
	}
	s.value("watched", &got)
	if len(got.Wrong) > 0 || got.Fresh == 0 || got.Stale == 0 {
		s.Errorf("%d times fresh, %d times stale, wrong: %q", got.Fresh, got.Stale, slices.Compact(got.Wrong))
	}
}

// Somebody types quickly into the form of a plan, pauses, types nonsense, and
// changes one thing after the other: whatever is shown is for what the form has,
// or greyed. The question before is withdrawn from the server too.
func TestPlanIsForItsInputs(t *testing.T) {
	s := open(t, "#//plan?v=1&shape=gpt2&batch=1&seq=64&gpu=3060")
	s.hints = []string{"400 (Bad Request)"}
	s.until(settledPlan)
	s.watch("[data-result=plan]",
		"(r) => (r.querySelector('[data-field=options]').textContent + ' ').match(/^--batch \\d+ --seq \\d+ /)[0] + r.querySelector('[data-field=model]').textContent",
		`() => {
			const v = (n) => document.querySelector('input[name=' + n + ']').value;
			const models = { gpt2: 'GPT2LMHeadModel', 'llama-3.2-1b': 'LlamaForCausalLM', 'qwen3-1.7b': 'Qwen3ForCausalLM' };
			return '--batch ' + v('batch') + ' --seq ' + v('seq') + ' ' + models[document.querySelector('select[name=shape]').value];
		}`)
	s.press("e")
	s.must(s.page.Type("input[name=batch]", "1"))
	for _, key := range "6" {
		s.press(string(key))
	}
	if got := s.text("[data-result=plan].stale [data-field=stale]"); got != "" && got != "for batch 1" {
		t.Errorf("the plan before is %q", got)
	}
	s.until(settledPlan)
	s.showsPlan(planOf(t, s.shapeFile("gpt2"), "--batch 16 --seq 64 --gpu 3060"))
	s.press("x")
	s.sees("[data-field=plan-trouble]")
	if got := s.text("[data-result=plan].stale [data-field=stale]"); got != "for batch 16" {
		t.Errorf("beside nonsense the plan is %q", got)
	}
	s.sees("input[name=batch][aria-invalid]")
	s.must(s.page.Type("input[name=batch]", "2"))
	s.must(s.page.Type("input[name=seq]", "32"))
	s.must(s.page.Pick("select[name=shape]", "qwen3-1.7b"))
	s.must(s.page.Pick("select[name=shape]", "llama-3.2-1b"))
	s.until(settledPlan)
	s.showsPlan(planOf(t, s.shapeFile("llama-3.2-1b"), "--batch 2 --seq 32 --gpu 3060"))
	// A plan that would take minutes is left for another one, which does not wait.
	s.click("[data-choice=serve]")
	s.must(s.page.Type("input[name=generate]", "4096"))
	s.sees("[data-ask=stop]")
	s.click("[data-choice=train]")
	s.until(settledPlan)
	s.watched()
	if n := s.number("document.querySelectorAll('.trail li').length"); n > 5 {
		t.Errorf("%v plans were made", n)
	}
}

// The same for a what-if and for a search, which is not made again by itself.
func TestWhatIfIsForItsInputs(t *testing.T) {
	s := open(t, "#/1/whatif?sets=expandable_segments:True;max_split_size_mb:128", varlen, multi)
	s.hints = []string{"status of 400"}
	s.until(settledWhatIf)
	s.watch("[data-result=whatif]",
		"(r) => [...r.querySelectorAll('[data-panel=outcomes] [data-variant]')].map((e) => e.dataset.variant).join(' ') + r.querySelector('[data-panel=outcomes] h2').textContent.match(/limit ([0-9.]+)|no limit/)[0]",
		`() => {
			const limits = { '': 'limit 17.22', none: 'no limit', '9GiB': 'limit 9.00', '9': 'limit 0.00' };
			const tried = [...document.querySelectorAll('.variants input:not([aria-invalid])')].map((e) => e.value);
			return ['recorded', ...tried].join(' ') + limits[document.querySelector('input[name=limit]').value];
		}`)
	s.must(s.page.Type("input[name=set-1]", "max_split_size_mb:20"))
	s.press("0")
	s.until(settledWhatIf)
	s.hash("max_split_size_mb%3A200")
	// One that is wrong is marked, and refused alone.
	s.must(s.page.Type("input[name=set-1]", "max_split:1"))
	s.sees("input[name=set-1][aria-invalid]")
	s.until(settledWhatIf)
	if got := s.outcomes(); len(got) != 2 || got[1].Variant != "expandable_segments:True" {
		t.Errorf("%+v", got)
	}
	if said := s.text("[data-field=refused]"); !strings.Contains(said, "did you mean max_split_size_mb") {
		t.Errorf("%q", said)
	}
	s.must(s.page.Type("input[name=set-1]", "max_split_size_mb:200"))
	s.until(settledWhatIf + " && !document.querySelector('[data-field=refused]')")
	// A bound that is wrong refuses all.
	s.must(s.page.Type("input[name=limit]", "nonsense"))
	s.sees("input[name=limit][aria-invalid]")
	if got := s.text("[data-result=whatif].stale [data-field=stale]"); got != "for limit as recorded" {
		t.Errorf("beside nonsense the table is %q", got)
	}
	s.must(s.page.Type("input[name=limit]", "none"))
	s.until(settledWhatIf)

	// A search is greyed as soon as it is for something else.
	s.must(s.page.Pick("select[name=goal]", "reserved"))
	s.must(s.page.Pick("select[name=budget]", "5"))
	s.click("[data-ask=tune]")
	s.hash("tune=5&goal=reserved")
	s.sees("[data-result=tune]:not(.stale)")
	s.until(settledWhatIf)
	s.must(s.page.Pick("select[name=goal]", "calls"))
	s.sees("[data-result=tune].stale")
	if got := s.text("[data-result=tune] [data-field=stale]"); got != "for less reserved memory" {
		t.Errorf("the search is %q", got)
	}
	s.until("!location.hash.includes('tune=')")
	s.must(s.page.Pick("select[name=goal]", "reserved"))
	s.sees("[data-result=tune]:not(.stale)")
	s.watched()
}

// What-if begins with the standard settings, after the curve, and can be stopped.
func TestWhatIfOnOpening(t *testing.T) {
	s := open(t, "#/1/whatif", long)
	s.sees("[data-panel=whatif-recorded] canvas")
	s.must(s.page.Until("document.querySelector('[data-ask=stop]')", 2*soon))
	s.press("s")
	s.must(s.page.Until("document.querySelector('.whatif-status')?.innerText.includes('Stopped')", 2*soon))
	s.must(s.page.Type("input[name=set-4]", ""))
	s.press(page.Enter)
	s.must(s.page.Until(settledWhatIf, 8*soon))
	if got := s.outcomes(); len(got) != 6 || got[5].Variant != "" {
		t.Errorf("%+v", got)
	}
	// The legend is beside the curve, and brings out a line by the keyboard.
	s.must(s.page.Resize(1280, 720))
	var inView bool
	s.value("(() => { const r = document.querySelector('.whatif-legend').getBoundingClientRect(); return r.top > 0 && r.bottom < innerHeight && r.left > 0 && r.right <= innerWidth; })()", &inView)
	if n := s.number("document.querySelectorAll('.whatif-legend button').length"); n != 6 || !inView {
		t.Errorf("the legend has %v lines, in view: %v", n, inView)
	}
	s.value("document.querySelector('.whatif-legend li:nth-child(2) button').focus()", nil)
	s.press(page.Enter)
	s.sees(".whatif-legend li:nth-child(2) button[aria-pressed=true]")
	s.sees("[data-variant='expandable_segments:True'].on")
}

// The form of a plan speaks the user's language: kinds of runs, a card, defaults
// as values, a config that is chosen; by the mouse.
func TestPlanForm(t *testing.T) {
	s := openAt(t, "#//plan?v=1&gpu=h100&seq=4096&mask=none&batch=1&shape=llama-3.1-8b", 1280, 720, false)
	s.until(settledPlan)
	file := s.shapeFile("llama-3.1-8b")
	want := planOf(t, file, "--batch 1 --seq 4096 --mask none --gpu h100")
	shown := func(name string) string {
		t.Helper()
		var text string
		s.value("(() => { const e = document.querySelector('[name="+name+"]'); return e.value || (e.selectedOptions ? e.selectedOptions[0].textContent : e.placeholder); })()", &text)
		return text
	}
	for name, value := range map[string]string{"dtype": "bf16", "attention": "sdpa", "optimizer": "adamw-fused"} {
		if got := shown(name); got != value || !slices.ContainsFunc(want.Assumed, func(a string) bool { return strings.HasPrefix(a, fmt.Sprintf("--%s %s:", name, value)) }) {
			t.Errorf("%s is %q in the form; ashlar plan assumes %q", name, got, want.Assumed)
		}
	}
	var reason string
	s.value("(() => { const e = document.querySelector('[data-choice=vllm]'); return e.disabled ? e.title : ''; })()", &reason)
	if !strings.Contains(reason, "use ashlar plan --serve vllm on the command line") {
		t.Errorf("vLLM says %q", reason)
	}
	// The legend of the step is in view, with what the peak is made of.
	var names []string
	s.value("[...document.querySelectorAll('.plan-legend [data-key]')].filter((e) => e.getBoundingClientRect().bottom < innerHeight).map((e) => e.dataset.key)", &names)
	for _, c := range want.Components {
		if c.Bytes > want.Allocated/100 && !slices.Contains(names, c.Name) {
			t.Errorf("%s is not in the legend in view: %q", c.Name, names)
		}
	}
	s.click("[data-choice=lora]")
	s.sees("input[name=lora]")
	s.until(settledPlan)
	s.showsPlan(planOf(t, file, "--batch 1 --seq 4096 --mask none --gpu h100 --lora 16"))
	s.click("[data-choice=qlora]")
	s.until(settledPlan)
	s.showsPlan(planOf(t, file, "--batch 1 --seq 4096 --mask none --gpu h100 --lora 16 --quant nf4-double"))
	if got := shown("quant"); got != "nf4-double" {
		t.Errorf("QLoRA has %q weights", got)
	}
	s.click("[data-choice=serve]")
	s.sees("input[name=generate]")
	s.until(settledPlan)
	s.showsPlan(planOf(t, file, "--batch 1 --seq 4096 --mask none --gpu h100 --mode generate"))
	if got := shown("generate"); got != "64" {
		t.Errorf("%q tokens are generated", got)
	}
	var copied string
	s.value("document.querySelector('.plan-asks [data-copy]').dataset.copy", &copied)
	if copied != "ashlar plan llama-3.1-8b.json --batch 1 --seq 4096 --mask none --mode generate --gpu h100" {
		t.Errorf("%q", copied)
	}
	// Back to training, by the keyboard: what was for LoRA is gone.
	s.value("document.querySelector('[data-choice=train]').focus()", nil)
	s.press(page.Enter)
	s.until(settledPlan)
	s.showsPlan(want)
	// From 640 px on nothing lies over another.
	for _, width := range []int64{960, 800, 640} {
		s.must(s.page.Resize(width, 720))
		var over []string
		s.value(`(() => {
			const all = [...document.querySelectorAll('.plan-strip .value, .plan-strip .sub, .option > label, .option > input, .option > select, .lever-name, .lever-saving')]
				.map((e) => [e.textContent || e.name, e.getBoundingClientRect()]).filter(([, r]) => r.width > 1 && r.height > 1);
			const out = [];
			all.forEach(([a, r], i) => all.slice(i + 1).forEach(([b, q]) => {
				if (r.left < q.right - 1 && q.left < r.right - 1 && r.top < q.bottom - 1 && q.top < r.bottom - 1) out.push(a + ' over ' + b);
			}));
			return out;
		})()`, &over)
		if len(over) > 0 {
			t.Errorf("at %d px: %q", width, over)
		}
	}
}
