package script

import (
	"errors"
	"strings"
	"testing"
)

const good = `# A comment.

> alloc a 1000
segment_alloc A 2097152
alloc A+0 1000

> free a
free_requested A+0 1000
free_completed A+0 1000
`

// TestRunFile: a right script comes back unchanged, a wrong one corrected.
func TestRunFile(t *testing.T) {
	got, err := RunFile(good)
	if err != nil || got != good {
		t.Errorf("%v:\n%s", err, got)
	}
	got, err = RunFile(strings.Replace(good, "A+0 1000", "A+512 7", 1))
	if err != nil || got != good {
		t.Errorf("a wrong answer is not corrected: %v:\n%s", err, got)
	}
	if _, err := RunFile("alloc a 1000\n"); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("a line that is nothing: %v", err)
	}
}

// TestBadCommands: what is no command is an error that says so and changes
// nothing.
func TestBadCommands(t *testing.T) {
	r := New()
	for _, line := range []string{
		"fly", "alloc", "alloc a", "alloc a many", "alloc a 1 stream=x", "free nobody", "record a", "stats nothing", "begin p", "endcapture g",
		"capture g x", "capture g 1 pool=q", "limit x", "fraction x", "fail flight 1", "fail malloc 0", "complete x", "restore x", "checkpoint x p",
		"device total=much", "device conf=nonsense:1", "device limit=x", "device pytorch=x",
	} {
		if _, err := r.Run(line); !errors.Is(err, ErrCommand) {
			t.Errorf("%q: %v", line, err)
		}
	}
	if n := r.Device.Calls().Total(); n != 0 {
		t.Errorf("%d driver calls", n)
	}
	if _, err := r.Run("alloc a 1"); err != nil {
		t.Error(err)
	}
	if _, err := r.Run("alloc a 1"); !errors.Is(err, ErrCommand) {
		t.Errorf("a name used twice: %v", err)
	}
}

// TestNames: segments are named A to Z, then AA, AB.
func TestNames(t *testing.T) {
	r := New()
	last := ""
	for range 28 {
		last = r.nameSegment(1, 1, false)
	}
	if last != "AB" {
		t.Errorf("the 28th segment is %s", last)
	}
}

// TestFinish: what is left behind is found.
func TestFinish(t *testing.T) {
	r := New()
	for _, line := range []string{"pool p", "begin p", "alloc a 1000", "record a 3", "capture g 5", "alloc b 3000000 stream=5", "free a"} {
		if _, err := r.Run(line); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Finish(); err != nil {
		t.Error(err)
	}
	if r.Device.Held() != 0 {
		t.Errorf("%d bytes held", r.Device.Held())
	}
}
