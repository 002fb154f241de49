package diff

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// lines reads "f10 f12 g30": lines of functions.
func lines(text string) []line {
	var out []line
	for _, s := range strings.Fields(text) {
		l := line{function: s[:1]}
		fmt.Sscan(s[1:], &l.number)
		out = append(out, l)
	}
	return out
}

func TestAlignLines(t *testing.T) {
	for _, test := range []struct{ name, a, b, want string }{
		{"unchanged", "f10 f12 g30", "f10 f12 g30", "10-10 12-12 30-30"},
		{"another way through the same file", "f10 f12 g30", "f12 f14 g30 g31", "12-12 30-30"},
		{"neighbours, another way", "f10 f11 f12", "f11 f12 f13", "11-11 12-12"},
		{"two lines more at the top", "f10 f12 f14 g30 g31", "f12 f14 f16 g32 g33", "10-12 12-14 14-16 30-32 31-33"},
		{"a line more within", "f10 f12 f14 f15 f17", "f10 f12 f15 f16 f18", "10-10 12-12 14-15 15-16 17-18"},
		{"a line less, then two more", "f10 f12 f13 f15 f18 f30 f35 f39", "f10 f11 f12 f14 f17 f31 f36 f40", "10-10 12-11 13-12 15-14 18-17 30-31 35-36 39-40"},
		{"a function at no common line", "f10", "f12", "10-12"},
		{"moved by one onto each other", "e40 e41 f95 f96 g184", "e40 e41 f96 f97 g187", "40-40 41-41 95-96 96-97 184-187"},
		{"too little to tell that it moved", "f10 f12", "f12 f14", "12-12"},
		{"a function gone, another there", "f10 f12 h20 g30 g31", "f10 f12 g25 g26 k40", "10-10 12-12 30-25 31-26"},
		{"functions change places", "f10 f12 g30 g31 g32", "g10 g11 g12 f30 f32", "30-10 31-11 32-12"},
		{"two functions on a line", "a10 b10 f11", "a12 b12 f13", "10-12 10-12 11-13"},
		{"nothing", "", "f1", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			a, b := lines(test.a), lines(test.b)
			pairs := alignLines(a, b)
			var got []string
			for _, l := range a {
				if to, ok := pairs[l]; ok {
					got = append(got, fmt.Sprintf("%d-%d", l.number, to.number))
				}
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("got %v, want %s", got, test.want)
			}
		})
	}
}

// Pairs are of one function, keep the order, and are worth at least what the
// unmoved lines are.
func TestAlignLinesKeepsItsRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) []line {
			out := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) line {
				return line{rapid.Int64Range(1, 30).Draw(t, "line"), rapid.SampledFrom([]string{"f", "g"}).Draw(t, "function")}
			}), 0, 20).Draw(t, name)
			slices.SortFunc(out, byPlace)
			return slices.Compact(out)
		}
		a, b := draw("a"), draw("b")
		pairs := alignLines(a, b)
		worth, distance, unmoved, cost := 0, int64(0), 0, moveCost
		if edited(a, b) {
			cost = editedMoveCost
		}
		last := line{}
		for _, l := range a {
			if slices.Contains(b, l) {
				unmoved++
			}
			to, ok := pairs[l]
			if !ok {
				continue
			}
			if to.function != l.function || byPlace(last, to) >= 0 || !slices.Contains(b, to) {
				t.Fatalf("%v becomes %v after %v", l, to, last)
			}
			worth += pairWorth
			if d := to.number - l.number; d != distance {
				worth -= cost
				distance = d
			}
			last = to
		}
		if worth < unmoved*pairWorth {
			t.Fatalf("%d, but %d lines are unmoved: %v", worth, unmoved, pairs)
		}
	})
}

// A generated file of too many lines is left to the comparison by function.
func TestAlignLinesIsBounded(t *testing.T) {
	var a, b []line
	for i := range int64(2500) {
		a, b = append(a, line{i + 1, "call"}), append(b, line{i + 2, "call"})
	}
	if got := alignLines(a, b); got != nil {
		t.Errorf("%d pairs", len(got))
	}
	if got := alignLines(a[:500], b[:500]); len(got) < 499 {
		t.Errorf("%d pairs", len(got))
	}
}

func TestNames(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{"/a/b/model.py", "model.py"},
		{"model.py", "model.py"},
		{"<string>", "<string>"},
		{"<frozen importlib._bootstrap>", "<frozen>"},
		{"<ipython-input-12-0a1b2c3d>", "<ipython-input>"},
		{"<eval_with_key>.34", "<eval_with_key>"},
		{"/scratch/ipykernel_4711/1234567.py", "<cell>"},
		{"/scratch/inductor/tx/ctxppuofrshd2wl57ly2aqauteokyc6ty4gbumfcip6nidt4otey.py", "<inductor>"},
		{"/scratch/c_short.py", "c_short.py"},
	} {
		if got := fileName(test.in); got != test.want {
			t.Errorf("file %s: got %s, want %s", test.in, got, test.want)
		}
	}
	for _, test := range []struct{ in, want string }{
		{"forward", "forward"},
		{"forward + 0x1f2a", "forward"},
		{"forward+0xFF", "forward"},
		{"at::empty(long)", "at::empty(long)"},
		{"<function f at 0x7f12>", "<function f at>"},
	} {
		if got := functionName(test.in); got != test.want {
			t.Errorf("function %s: got %q, want %q", test.in, got, test.want)
		}
	}
}

func TestPairFiles(t *testing.T) {
	files := func(all ...string) map[string]sourceLines {
		out := map[string]sourceLines{}
		for _, f := range all {
			name, text, _ := strings.Cut(f, " ")
			out[name] = sourceLines{}
			for _, l := range lines(text) {
				out[name][l] = 0
			}
		}
		return out
	}
	hashed := func(c string) string { return "/scratch/inductor/" + c + c + "/c" + strings.Repeat(c, 51) + ".py" }
	got := pairFiles(files(
		"/v1/site-packages/torch/nn/linear.py", "/v1/site-packages/torch/ao/linear.py", "/home/a/proj/train.py",
		"/home/a/proj/data/utils.py", "/home/a/proj/model/utils.py", "/home/a/gone.py", "same.py",
		"/x/run.py f1 f2 f3", "/y/run.py f1 f2 f9",
		hashed("a")+" c1 c2 c3 c4", hashed("b")+" c7 c8", hashed("d")+" c20",
	), files(
		"/v2/dist-packages/torch/ao/linear.py", "/v2/dist-packages/torch/nn/linear.py", "/srv/train.py",
		"/srv/model/utils.py", "/srv/data/utils.py", "/srv/new.py", "same.py", "/other/same.py",
		"/u/run.py f1 f2 f9", "/v/run.py f1 f3",
		hashed("e")+" c7 c8", hashed("f")+" c1 c2", hashed("g")+" c30",
	))
	want := map[string]string{
		"/v1/site-packages/torch/nn/linear.py": "/v2/dist-packages/torch/nn/linear.py",
		"/v1/site-packages/torch/ao/linear.py": "/v2/dist-packages/torch/ao/linear.py",
		"/home/a/proj/train.py":                "/srv/train.py",
		"/home/a/proj/data/utils.py":           "/srv/data/utils.py",
		"/home/a/proj/model/utils.py":          "/srv/model/utils.py",
		"same.py":                              "same.py",
		"/x/run.py":                            "/v/run.py",
		"/y/run.py":                            "/u/run.py",
		hashed("a"):                            hashed("f"),
		hashed("b"):                            hashed("e"),
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}
