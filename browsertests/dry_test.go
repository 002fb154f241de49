package browsertests

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/browsertests/page"
)

// The ledger of a dry run is dropped on the Plan screen: the answer is that of the
// command, for the card and the limit that the form has.
func TestDryLedger(t *testing.T) {
	const file = "../testdata/dry/mlp.dry"
	s := open(t, "#//plan")
	s.until("document.querySelector('[data-field=planned]')")
	text, err := os.ReadFile(file)
	s.must(err)
	s.value(`(() => {
		const d = new DataTransfer();
		d.items.add(new File([`+page.Quote(string(text))+`], 'mlp.dry'));
		dispatchEvent(new DragEvent('drop', {dataTransfer: d}));
	})()`, nil)
	s.until("document.querySelector('[data-panel=dry-verdict]')")
	shows := func(flags string) {
		t.Helper()
		want := readPlan(t, exec.Command(stage.ashlar, append([]string{"dry", file, "--json"}, strings.Fields(flags)...)...))
		s.until("document.querySelector('[data-panel=dry-verdict]').dataset.fits === '" + map[bool]string{true: "true", false: "false"}[*want.Fits] + "'")
		for field, n := range map[string]int64{"peak_allocated_bytes": want.Allocated, "peak_reserved_bytes": want.Reserved} {
			if got := s.bytes(field); got != n {
				t.Errorf("%s: %d, want %d", field, got, n)
			}
		}
	}
	shows("--gpu h100")
	if line := s.text("[data-panel=dry-lines] tbody tr"); !strings.Contains(line, "train.py:") {
		t.Errorf("the first line is %q", line)
	}
	s.measures()
	for _, width := range []int64{1280, 640} {
		s.must(s.page.Resize(width, 720))
		s.fits(fmt.Sprintf("a ledger at %d px", width))
	}
	s.must(s.page.Resize(1280, 720))
	s.value(axe(t)+"\n;void 0", nil)
	s.accessible("a ledger")
	if line := s.text("[data-field=command]"); line != "ashlar dry mlp.dry --gpu h100" {
		t.Errorf("the command is %q", line)
	}
	s.more()
	s.must(s.page.Type("input[name=limit]", "90MiB"))
	shows("--gpu h100 --limit 90MiB")
	s.reach("[data-act=close-ledger]")
	s.press(page.Enter)
	s.until("document.querySelector('.plan-status:not([hidden])')")
}
