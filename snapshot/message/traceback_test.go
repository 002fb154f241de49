package message

import (
	"fmt"
	"strings"
	"testing"
)

const refusedText = "CUDA out of memory. Tried to allocate 1.74 GiB. GPU 1 has a total capacity of 23.57 GiB of which 605.88 MiB is free. Of the allocated memory 20.21 GiB is allocated by PyTorch, and 185.98 MiB is reserved by PyTorch but unallocated."

// Tracebacks as Python, launchers and notebooks print them.
func TestTraceback(t *testing.T) {
	plain := `step 11
Traceback (most recent call last):
  File "/home/u/train.py", line 80, in <module>
    main()
    ~~~~^^
  File "/home/u/train.py", line 39, in main
    loss = model(x, labels=y).loss.sum() + aux(x)
           ~~~~~^^^^^^^^^^^^^
  File "/venv/lib/python3.12/site-packages/torch/nn/modules/linear.py", line 134, in forward
    return F.linear(input, self.weight, self.bias)
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
torch.OutOfMemoryError: ` + refusedText
	innermost := "/venv/lib/python3.12/site-packages/torch/nn/modules/linear.py:134 forward F.linear(input, self.weight, self.bias)"
	outer := "/home/u/train.py:39 main model(x, labels=y)|/home/u/train.py:80 <module> main()"
	for _, tt := range []struct {
		name, text string
		rank, pid  int
		want       string
	}{
		{"plain", plain, -1, 0, innermost + "|" + outer},
		{"rank", prefixed("[rank3]: ", plain), 3, 0, innermost + "|" + outer},
		{"torchrun", prefixed("[default5]:", plain), 5, 0, innermost + "|" + outer},
		{"srun", prefixed("12: ", plain), 12, 0, innermost + "|" + outer},
		{"mpirun", prefixed("[1,4]<stderr>: ", plain), 4, 0, innermost + "|" + outer},
		{"vLLM", prefixed("(VllmWorker rank=1 pid=2978) ERROR 03-19 07:27:53 [multiproc_executor.py:375] ", plain), 1, 2978, innermost + "|" + outer},
		{"ray", prefixed("(train_fn pid=41, ip=10.0.0.7) ", plain), -1, 41, innermost + "|" + outer},
		{"unknown", prefixed("node-7>", plain), -1, 0, innermost + "|" + outer},
		{"unknown, after another error", prefixed("worker-1: ", "  File \"x.py\", line 1, in f\nValueError: no\n"+plain), -1, 0, innermost + "|" + outer},
		{"JSON", `{"log": "` + strings.ReplaceAll(strings.ReplaceAll(plain, `"`, `\"`), "\n", `\n`) + `"}`, -1, 0, innermost + "|" + outer},
		{"interleaved", interleaved(prefixed("[rank0]: ", plain), prefixed("[rank1]: ", strings.ReplaceAll(plain, "train.py", "other.py"))), 0, 0, innermost + "|" + outer},
		{"notebook", "Cell In[5], line 3\n      1 x = make()\n----> 3 y = torch.cat([x, x])\n\nOutOfMemoryError: " + refusedText, -1, 0, "Cell In[5]:3  y = torch.cat([x, x])"},
		{"ipython", "File ~/proj/run.py:12, in step(x)\n     10 def step(x):\n---> 12     return x @ x\n\nOutOfMemoryError: " + refusedText, -1, 0, "~/proj/run.py:12 step return x @ x"},
		{"Windows", "Traceback (most recent call last):\n  File \"C:\\Users\\u\\train.py\", line 7, in f\n    x.cuda()\nRuntimeError: " + refusedText, -1, 0, "C:/Users/u/train.py:7 f x.cuda()"},
		{"none", "step 5\n" + refusedText, -1, 0, ""},
		{"another error", "Traceback (most recent call last):\n  File \"a.py\", line 7, in f\nValueError: no\n" + refusedText, -1, 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			all, err := Parse(tt.text)
			if err != nil {
				t.Fatal(err)
			}
			o := all[0]
			var got []string
			for _, f := range o.Traceback {
				got = append(got, fmt.Sprintf("%s:%d %s %s", f.File, f.Line, f.Name, f.Code))
			}
			if s := strings.Join(got, "|"); s != tt.want || o.Rank != tt.rank || o.PID != tt.pid {
				t.Errorf("rank %d, pid %d\n got %s\nwant %s", o.Rank, o.PID, s, tt.want)
			}
		})
	}
}

func prefixed(prefix, text string) string {
	return prefix + strings.ReplaceAll(text, "\n", "\n"+prefix)
}

func interleaved(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	var out []string
	for i := range x {
		out = append(out, x[i], y[i])
	}
	return strings.Join(out, "\n")
}

// The time before a line is that of its message.
func TestTime(t *testing.T) {
	all, err := Parse("2024-05-01 12:30:45,125 - root - ERROR - " + refusedText)
	if err != nil {
		t.Fatal(err)
	}
	if got := all[0].Time.Format("2006-01-02 15:04:05.000"); got != "2024-05-01 12:30:45.125" {
		t.Error(got)
	}
}
