package message

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/units"
)

// brief writes a message in one line, for tables.
func brief(o *OOM) string {
	var b strings.Builder
	b.WriteString(o.Backend)
	word := func(name, value string) {
		if value != "" {
			b.WriteString(" " + name + value)
		}
	}
	word("", o.Platform)
	word("by ", o.Library)
	word("v", o.Version)
	word("", o.Exception)
	if o.Device >= 0 {
		word("gpu", fmt.Sprint(o.Device))
	}
	for _, s := range []struct {
		name string
		r    *units.Range
	}{
		{"tried", o.TriedBytes},
		{"total", o.TotalBytes},
		{"free", o.FreeBytes},
		{"limit", o.LimitBytes},
		{"allocated", o.AllocatedBytes},
		{"active", o.ActiveBytes},
		{"pools", o.PrivatePoolBytes},
		{"reserved", o.ReservedBytes},
		{"unallocated", o.ReservedUnallocatedBytes},
	} {
		if s.r != nil {
			word(s.name+" ", units.Torch(s.r.Mid))
		}
	}
	for _, p := range o.Processes {
		if p.Self {
			word("self ", units.Torch(p.Bytes.Mid))
		} else {
			word(fmt.Sprintf("pid%d ", p.PID), units.Torch(p.Bytes.Mid))
		}
	}
	switch {
	case strings.Contains(o.Advice, "expandable_segments"):
		word("", "advice:expandable")
	case strings.Contains(o.Advice, "max_split_size_mb"):
		word("", "advice:max_split")
	case o.Advice != "":
		word("", "advice:other")
	}
	return b.String()
}

// parse is Parse for a text that has messages, checked for what always holds.
func parse(t *testing.T, text string) []*OOM {
	t.Helper()
	all, err := Parse(text)
	if err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	check(t, text, all)
	return all
}

func check(t *testing.T, text string, all []*OOM) {
	t.Helper()
	at := 0
	for _, o := range all {
		i := strings.Index(text[at:], o.Text)
		if o.Text == "" || i < 0 {
			t.Fatalf("text %q is not in the input after byte %d", o.Text, at)
		}
		if n := 1 + strings.Count(text[:at+i], "\n"); o.Line < n {
			t.Fatalf("line %d, stands at %d", o.Line, n)
		}
		at += i
		for _, r := range []*units.Range{
			o.TriedBytes, o.TotalBytes, o.FreeBytes, o.LimitBytes, o.AllocatedBytes, o.ActiveBytes,
			o.PrivatePoolBytes, o.ReservedBytes, o.ReservedUnallocatedBytes,
		} {
			if r != nil && (r.Low > r.Mid || r.Mid > r.High) {
				t.Fatalf("%+v is no range in %q", *r, o.Text)
			}
		}
	}
}
