package stats

import (
	"slices"
	"testing"
)

func TestFromValues(t *testing.T) {
	d := FromValues(3, map[string]int64{"num_ooms": 2, "active.all.peak": 7, "z_new": 1, "num_oom_rejections": 4})
	if d.Device != 3 || !d.Exact || d.Source != Recorded || d.Line != 0 {
		t.Errorf("%+v", d)
	}
	if len(d.Values) != 2 || d.Values["num_ooms"] != 2 || d.Values["active.all.peak"] != 7 {
		t.Errorf("values %v", d.Values)
	}
	if !slices.Equal(d.Unknown, []string{"num_oom_rejections", "z_new"}) || d.Extra["num_oom_rejections"] != 4 {
		t.Errorf("unknown %v, extra %v", d.Unknown, d.Extra)
	}
	if len(d.Missing) != len(Keys())-2 || slices.Contains(d.Missing, "num_ooms") {
		t.Errorf("%d missing", len(d.Missing))
	}
}
