package cards

import (
	"slices"
	"testing"
)

func TestMIGTable(t *testing.T) {
	if len(MIGCards()) < 5 {
		t.Error(MIGCards())
	}
	for _, name := range MIGCards() {
		c, ok := Find(name)
		profiles, source := c.MIG()
		if !ok || c.Name != name || source == "" || len(profiles) != 6 {
			t.Errorf("%s: %+v from %q", name, profiles, source)
		}
		for _, p := range profiles {
			if p.Bytes == 0 || p.Bytes > c.TotalBytes+1<<30 || !MIGFits([]MIGProfile{p}) {
				t.Errorf("%s: %+v", name, p)
			}
		}
		whole := profiles[len(profiles)-1]
		if whole.Compute != migCompute || whole.Slices != migSlices {
			t.Errorf("%s: the largest is %+v", name, whole)
		}
	}
	if p, _ := (Card{Name: "rtx-4090"}).MIG(); p != nil {
		t.Errorf("%+v", p)
	}
}

// What NVIDIA's guide lists as possible is, and what is not is not.
func TestMIGFits(t *testing.T) {
	h100, _ := Find("h100")
	all, _ := h100.MIG()
	for _, tt := range []struct {
		names []string
		fits  bool
	}{
		{nil, true},
		{[]string{"7g.80gb"}, true},
		{[]string{"7g.80gb", "1g.10gb"}, false},
		{[]string{"4g.40gb", "3g.40gb"}, true},
		{[]string{"3g.40gb", "3g.40gb"}, true},
		{[]string{"3g.40gb", "3g.40gb", "1g.10gb"}, false},
		{[]string{"4g.40gb", "4g.40gb"}, false},
		{[]string{"2g.20gb", "2g.20gb", "3g.40gb"}, true},
		{[]string{"1g.10gb", "4g.40gb", "2g.20gb"}, true},
		{[]string{"2g.20gb", "2g.20gb", "2g.20gb", "1g.10gb"}, true},
		{[]string{"2g.20gb", "2g.20gb", "2g.20gb", "2g.20gb"}, false},
		{[]string{"1g.20gb", "1g.20gb", "1g.20gb", "1g.20gb"}, true},
		{[]string{"1g.10gb", "1g.10gb", "1g.10gb", "1g.10gb", "1g.10gb", "1g.10gb", "1g.10gb"}, true},
	} {
		var profiles []MIGProfile
		for _, n := range tt.names {
			profiles = append(profiles, all[slices.IndexFunc(all, func(p MIGProfile) bool { return p.Name == n })])
		}
		if MIGFits(profiles) != tt.fits {
			t.Errorf("%v: not %v", tt.names, tt.fits)
		}
	}
}
