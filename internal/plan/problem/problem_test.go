package problem

import (
	"errors"
	"fmt"
	"testing"
)

func TestText(t *testing.T) {
	cause := errors.New("disk full")
	plain := New("{batch} is missing: give {batch} %d, not %q", 8, "{seq}")
	for _, tt := range []struct {
		err        error
		bare, flag string
	}{
		{cause, "disk full", "disk full"},
		{plain, `batch is missing: give batch 8, not "{seq}"`, `--batch is missing: give --batch 8, not "{seq}"`},
		{New("%s is for {mode} %s", Name("target-seq"), "train"), "target-seq is for mode train", "--target-seq is for --mode train"},
		{New("{sweep} seq: %w", plain), `sweep seq: batch is missing: give batch 8, not "{seq}"`, `--sweep seq: --batch is missing: give --batch 8, not "{seq}"`},
		{fmt.Errorf("a.json: %w", plain), `a.json: batch is missing: give batch 8, not "{seq}"`, `a.json: --batch is missing: give --batch 8, not "{seq}"`},
		{New("{max}: %w", cause), "max: disk full", "--max: disk full"},
	} {
		if tt.err.Error() != tt.bare || Flags(tt.err) != tt.flag {
			t.Errorf("%q and %q, want %q and %q", tt.err, Flags(tt.err), tt.bare, tt.flag)
		}
	}
	if !errors.Is(New("{max}: %w", cause), cause) {
		t.Error("the cause is lost")
	}
}
