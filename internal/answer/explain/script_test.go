package explain

import (
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/trace"
)

// The line of overflow names the job's own file where stacks begin in one, and nothing that a shell would run.
func TestScriptOf(t *testing.T) {
	for want, stacks := range map[string][]string{
		"pretrain.py": {"/home/me/model.py forward; /home/me/pretrain.py main; /home/me/pretrain.py <module>", "/usr/lib/python3.12/threading.py _bootstrap", ""},
		"run":         {"/job/data.py <module>; <frozen importlib._bootstrap> _load; /job/run <module>"},
		"job.py":      {"/job/job.py <module>; /job/ashlar.py _main; /job/ashlar.py <module>"},
		"tune.py": {
			"/job/tune.py <module>; /v/site-packages/ashlar_mem/ashlar_torch.py _main; /v/site-packages/ashlar_mem/ashlar_torch.py <module>; " +
				"<frozen runpy> _run_code; <frozen runpy> _run_module_as_main",
		},
		"path.py":  {"/job/path.py <module>; <frozen runpy> _run_code; <frozen runpy> run_path; /v/site-packages/x.py main"},
		someModule: {"/job/a/__main__.py <module>; <frozen runpy> _run_code; <frozen runpy> _run_module_as_main", "/job/a/__main__.py <module>; /usr/lib/python3.9/runpy.py _run_code; /usr/lib/python3.9/runpy.py run_module"},
	} {
		if got := scriptOf(traceOf(stacks...)); got != want {
			t.Errorf("%q: %s, want %s", stacks, got, want)
		}
	}
	for _, stack := range []string{
		"", "/job/model.py forward", "/tmp/ipykernel_1/22.py <module>; /v/site-packages/IPython/run.py run", "<stdin> <module>", "/job/x;rm <module>", "/job/$(id).py <module>", "/job/-c <module>",
		"/v/site-packages/trl/cli.py <module>",
	} {
		if got := scriptOf(traceOf(stack)); got != someScript {
			t.Errorf("%q: %s", stack, got)
		}
	}
	if got := scriptOf(traceOf("/a/one.py <module>", "/a/two.py <module>")); got != someScript {
		t.Errorf("two scripts: %s", got)
	}
}

// traceOf has stacks, innermost frame first.
func traceOf(stacks ...string) *trace.Trace {
	t := &trace.Trace{Strings: &trace.Strings{}, Stacks: trace.NewStacks()}
	for _, stack := range stacks {
		var ids []trace.FrameID
		for f := range strings.SplitSeq(stack, "; ") {
			if i := strings.LastIndexByte(f, ' '); i >= 0 {
				ids = append(ids, t.Stacks.AddFrame(trace.Frame{Name: t.Strings.Add(f[i+1:]), File: t.Strings.Add(f[:i]), Line: 1}))
			}
		}
		t.Stacks.Add(ids)
	}
	return t
}
