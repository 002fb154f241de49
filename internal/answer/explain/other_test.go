package explain

import (
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/snapshot"
)

// A message is of the failure that its file ends with, or it is named as another.
func TestOtherFailure(t *testing.T) {
	f, err := snapshot.Open(t.Context(), "../../../testdata/snapshots/gpt2_fixed-tight-default.pickle.gz", snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := whatif.Check(t.Context(), f.Name, run.New(f.Traces[0], nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ from, to, want string }{
		{"", "", ""},
		{"786.00 MiB", "884.00 MiB", "(tried 884.00 MiB, not 786.00 MiB)"},
		{"6.05 GiB", "6.15 GiB", "(allocated 6.15 GiB, not 6.05 GiB; reserved 6.85 GiB, not 6.75 GiB)"},
		{"7.43 GiB allowed", "6.43 GiB allowed", "(allowed 6.43 GiB, not between 6.76 GiB and 7.52 GiB)"},
		{"GPU 0", "GPU 5", ""}, // which is said elsewhere
	} {
		text := strings.Replace(capped, tt.from, tt.to, 1)
		got := OtherFailure(r, oom(t, text))
		if tt.want == "" && got != "" || tt.want != "" && got != "The message is about another failure than the file "+tt.want+". The file is explained without it." {
			t.Errorf("%s for %s: %q", tt.to, tt.from, got)
		}
	}
}
