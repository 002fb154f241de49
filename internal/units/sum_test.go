package units

import "testing"

func TestSum(t *testing.T) {
	for _, tt := range []struct {
		terms []Term
		want  string
	}{
		{
			[]Term{{6495889752, false, "allocated"}, {712*mib + mib/5, false, "reserved but unallocated"}},
			"6.05 GiB allocated + 0.70 GiB (712.20 MiB) reserved but unallocated = 6.75 GiB in all",
		},
		{ // with two decimals 0.45 + 0.45 would be 0.91
			[]Term{{1 << 30, false, "a"}, {465 * mib, false, "b"}, {465 * mib, false, "c"}},
			"1.000 GiB a + 0.454 GiB (465.00 MiB) b + 0.454 GiB (465.00 MiB) c = 1.908 GiB in all",
		},
		{ // 6.7455 + 0.7676 is 7.5131
			[]Term{{7242925572, false, "reserved"}, {786 * mib, false, "new"}},
			"6.75 GiB reserved + 0.77 GiB (786.00 MiB) new = 7.52 GiB in all",
		},
		{[]Term{{15 << 30, false, "a"}, {5 << 30, true, "b"}, {0, true, "c"}}, "15.00 GiB a - 5.00 GiB b - 0.00 GiB c = 10.00 GiB in all"},
		{[]Term{{1 << 30, false, "a"}, {5 << 30, true, "b"}}, "1.00 GiB a - 5.00 GiB b = -4.00 GiB in all"},
		{[]Term{{100, false, "a"}, {30, true, "b"}}, "100 B a - 30 B b = 70 B in all"},
	} {
		if got := Sum(tt.terms, "in all"); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}
