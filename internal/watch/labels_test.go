package watch

import (
	"maps"
	"testing"
)

func TestLabels(t *testing.T) {
	rows := []RunStatus{
		{Run: "a.py", World: 2, Rank: 0, Session: "s1"},
		{Run: "a.py", World: 2, Rank: 1, Session: "s2"},
		{Run: "a.py", World: 2, Rank: 0, Attempt: 1, Session: "s3"},
		{Run: "b.py", Host: "x", PID: 1, Session: "s4"},
		{Run: "b.py", Host: "x", PID: 2, Session: "s5"},
		{Run: "c.py", Host: "x", PID: 1, Session: "s6"},
		{Run: "c.py", Host: "y", PID: 1, Session: "s7"},
		{Run: "d.py", Host: "x", PID: 1, Session: "s8"},
	}
	want := map[string]string{
		"a.py.0": "a.py", "a.py.1": "a.py (attempt 1)", "s4": "b.py pid 1", "s5": "b.py pid 2",
		"s6": "c.py x pid 1", "s7": "c.py y pid 1", "s8": "d.py",
	}
	if got := Labels(rows); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
