package pytorch

import (
	"encoding/json"
	"testing"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Version{
		"2.7": Of(2, 7), "2.7.1": Of(2, 7), "v2.11.0": Default, "2.11.0+cu130": Default, "2.12.0a0+git1": Of(2, 12), "1.13.1": Of(1, 13),
	} {
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("Parse(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "2", "2.", "two.seven", "-2.7", "0.4", "2.999", ".7", "nightly"} {
		if got, err := Parse(text); err == nil {
			t.Errorf("Parse(%q) = %v", text, got)
		}
	}
}

func TestRange(t *testing.T) {
	for _, c := range []struct {
		r                   Range
		text                string
		since, before, has8 bool // 2.8
	}{
		{Range{}, "unknown", false, false, false},
		{Exactly(Of(2, 8)), "2.8", true, false, true},
		{Range{Of(2, 5), Of(2, 7)}, "2.5 to 2.7", false, true, false},
		{Range{Of(2, 5), Of(2, 9)}, "2.5 to 2.9", false, false, true},
		{Range{Of(2, 12), Newest}, "2.12 or later", true, false, false},
		{Exactly(Newest), "2.13", true, false, false},
	} {
		v := Of(2, 8)
		if v := c.r.Assumed(); v != Default && (!c.r.Has(v) || c.r.Has(Default)) {
			t.Errorf("%v: %v is assumed", c.r, v)
		}
		if got := c.r.String(); got != c.text {
			t.Errorf("%v, want %s", got, c.text)
		}
		if c.r.Since(v) != c.since || c.r.Before(v) != c.before || c.r.Has(v) != c.has8 {
			t.Errorf("%v: since %v, before %v, has %v", c.r, c.r.Since(v), c.r.Before(v), c.r.Has(v))
		}
	}
	if got := (Range{Of(2, 9), Of(2, 11)}).Versions(); len(got) != 3 || got[1].String() != "2.10" {
		t.Errorf("versions %v", got)
	}
}

func TestJSON(t *testing.T) {
	text, err := json.Marshal([]Range{{Of(2, 10), Default}, {}})
	if want := `[{"first":"2.10","last":"2.11"},{"first":"","last":""}]`; err != nil || string(text) != want {
		t.Errorf("%s, %v", text, err)
	}
	var back []Range
	if err := json.Unmarshal(text, &back); err != nil || back[0] != (Range{Of(2, 10), Default}) || back[1].Known() {
		t.Errorf("%v, %v", back, err)
	}
}
