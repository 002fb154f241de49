package explain_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/prognosis"
	"github.com/ashlar-mem/ashlar/internal/test/scenario"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// checkFixes carries every fix of a report out: the same program runs with it,
// and what was said must happen. Then it looks for the fixes of the truth.
func (s *story) checkFixes(t *testing.T, r *explain.Report, w way, fail func(string, ...any)) {
	t.Helper()
	var conf []string
	var kinds []string
	last := 0
	for _, f := range r.Fixes {
		kinds = append(kinds, f.Kind)
		at := place(&f)
		if at < last {
			fail("%s carries the run further than the one before it", f.Kind)
		}
		last = at
		if f.Kind == explain.FixShape {
			if f.Code == "" || f.Detail == "" || f.Carries != nil {
				fail("fix %+v", f)
			}
			continue
		}
		if f.PassesFailure == nil || !*f.PassesFailure || f.UntilEvent == nil || *f.UntilEvent < *r.Failure.Event || f.Detail == "" {
			fail("fix %+v", f)
			continue
		}
		switch f.Kind {
		case explain.FixSetting:
			conf = append(conf, f.Settings)
			s.checkSetting(t, f, w, fail)
		case explain.FixMemory:
			s.checkMemory(t, f, w, fail)
		case explain.FixEmptyCache:
			if !s.passesWith(t, w, (*scenario.Scenario).EmptyCache) {
				fail("empty_cache() does not help: %s", f.Detail)
			}
		}
	}
	if slices.Contains(kinds, explain.FixEmptyCache) != s.empties || s.passesWith(t, w, (*scenario.Scenario).EmptyCache) != s.empties {
		fail("empty_cache() is a fix: %v; the fixes are %v", s.empties, kinds)
	}
	if !slices.Contains(kinds, explain.FixMemory) {
		fail("more memory is no fix: %v", kinds)
	}
	s.checkPools(t, r, w, fail)
	if s.best != "" && (len(conf) == 0 || conf[0] != s.best) || slices.ContainsFunc(s.settings, func(c string) bool { return !slices.Contains(conf, c) }) {
		fail("settings %q, want %q first and %q among them", conf, s.best, s.settings)
	}
}

// place is where a fix belongs in the list: the further it carries the run, the
// earlier; more memory comes last.
func place(f *explain.Fix) int {
	switch {
	case f.Kind == explain.FixMemory:
		return 4
	case f.Kind == explain.FixEmptyCache || f.Kind == explain.FixDel:
		return 2 // what was stranded stays free
	case f.Carries == nil || f.Carries.Kind == prognosis.Unknown:
		return 3
	case f.Carries.Kind == prognosis.Steady:
		return 1
	}
	return 2
}

// checkSetting runs the program with other settings, in the same room and in
// the smallest that they are said to need.
func (s *story) checkSetting(t *testing.T, f explain.Fix, w way, fail func(string, ...any)) {
	t.Helper()
	c := s.config(w)
	c.Conf = f.Settings
	if _, failed := s.run(t, c, nil); failed {
		fail("with %q it fails too", f.Settings)
	}
	c = s.config(way{})
	c.Conf, c.Limit = f.Settings, *f.SmallestLimit
	if s.failsAnywhere(t, c) {
		fail("with %q it fails under %s", f.Settings, text(f.SmallestLimit))
	}
	c.Limit--
	// Expandable segments may map more than a limit allows, so that a limit
	// below what is live can do (spec 14 item 13).
	if !s.failsAnywhere(t, c) && !strings.Contains(f.Settings, "expandable") {
		fail("with %q it passes under less than %s", f.Settings, text(f.SmallestLimit))
	}
}

// checkMemory runs the program with the memory that is said to be enough, and
// with a little less.
func (s *story) checkMemory(t *testing.T, f explain.Fix, w way, fail func(string, ...any)) {
	t.Helper()
	enough := s.passes
	if w.device && s.passesDevice > 0 {
		enough = s.passesDevice
	}
	if *f.SmallestLimit != enough || *f.Bytes != enough-s.available {
		fail("more memory: %s, %s more; want %s", text(f.SmallestLimit), text(f.Bytes), units.Size(enough))
	}
	more := *s
	more.available = enough
	if more.failsAnywhere(t, more.config(w)) {
		fail("it fails with %s", units.Size(enough))
	}
	more.available--
	if !more.failsAnywhere(t, more.config(w)) {
		fail("it passes with less than %s", units.Size(enough))
	}
}

// failsAnywhere runs a story that may fail in its setup already.
func (s *story) failsAnywhere(t *testing.T, c scenario.Config) bool {
	t.Helper()
	failed := false
	_, err := scenario.Run(c, func(sc *scenario.Scenario) {
		s.setup(sc)
		s.request(sc)
		failed = sc.OOM() != nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return failed
}

// passesWith reports whether the request is served if something is done before.
func (s *story) passesWith(t *testing.T, w way, before func(*scenario.Scenario)) bool {
	t.Helper()
	_, failed := s.run(t, s.config(w), before)
	return !failed
}

// checkPools gives pools up, as the program is said to be able to.
func (s *story) checkPools(t *testing.T, r *explain.Report, w way, fail func(string, ...any)) {
	t.Helper()
	var code []explain.Fix
	for _, f := range r.Fixes {
		if f.Kind == explain.FixDel {
			code = append(code, f)
		}
	}
	if len(code) != len(s.cures) {
		fail("%d times pools to give up, want %d: %+v", len(code), len(s.cures), code)
		return
	}
	for i, c := range s.cures {
		if !s.passesWith(t, w, c.do) {
			fail("it does not help: %s", code[i].Detail)
		}
		if *code[i].Bytes != c.bytes {
			fail("%s are released, want %s: %s", text(code[i].Bytes), units.Size(c.bytes), code[i].Detail)
		}
		for part := range strings.SplitSeq(c.says, "|") {
			if !strings.Contains(code[i].Detail, part) {
				fail("%q is not in %q", part, code[i].Detail)
			}
		}
	}
}
