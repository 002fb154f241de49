package watch

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/hub"
	"github.com/ashlar-mem/ashlar/internal/hub/hubtest"
)

// A hub that gets a job by --forward shows it and evaluates its own alarms: what the
// job's server has raised already is not raised twice, commands run, and what only
// that server can ask for is left out.
func TestFollow(t *testing.T) {
	url, stop, err := hubtest.Serve(t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	c := newClock()
	reach := func(ctx context.Context) (*hub.Hub, error) { return hub.Open(ctx, hub.Options{URL: url}) }
	local := newTestServer(t, newTestHub(t, t.TempDir()), c, "oom: num_ooms > 0 -> log, snapshot")
	far, err := reach(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	touched := filepath.Join(t.TempDir(), "touched")
	there := newTestServer(t, far, c, "oom: num_ooms > 0 -> log, snapshot\nmine: num_ooms > 0 -> snapshot, run touch "+touched)
	f, err := there.newFollower(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	forward := &forwarder{from: local, open: reach}
	defer forward.reset()
	turn := func() {
		t.Helper()
		if err := forward.round(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := f.round(t.Context()); err != nil {
			t.Fatal(err)
		}
		there.work.Wait()
	}
	hello(t, local, testSession, 0)
	call(t, local, "/v1/samples", batch(c, testSession, 1, 5))
	turn()
	if st := there.Status(); len(st.Runs) != 1 || *st.Runs[0].Step != 2 || len(st.Alarms) != 0 {
		t.Fatalf("%+v", st)
	}
	ooms := func(seq int, n int64) {
		t.Helper()
		sample := sampleOf(c, seq)
		sample["num_ooms"] = n
		call(t, local, "/v1/samples", map[string]any{"v": 1, "session": testSession, "samples": []any{sample}})
		turn()
	}
	ooms(6, 1)
	check := func(cleared bool) {
		t.Helper()
		st := there.Status()
		slices.SortFunc(st.Alarms, func(a, b Alarm) int { return strings.Compare(a.Name, b.Name) })
		if len(st.Alarms) != 2 || st.Alarms[0].Name != "mine" || !st.Alarms[0].AtHub || st.Alarms[1].Name != "oom" || st.Alarms[1].AtHub {
			t.Fatalf("%+v", st.Alarms)
		}
		for _, a := range st.Alarms {
			if (a.ClearedUS != nil) != cleared {
				t.Errorf("%s is cleared: %v", a.Name, a.ClearedUS != nil)
			}
		}
		if do := st.Alarms[0].Actions; !strings.Contains(do[0].Result, "another ashlar watch") || do[1].Result != "exit status 0" {
			t.Errorf("%+v", do)
		}
	}
	check(false)
	if _, err := os.Stat(touched); err != nil {
		t.Error(err)
	}
	ooms(7, 0)
	check(true)
	call(t, local, "/v1/samples", map[string]any{"v": 1, "session": testSession, "samples": []any{}, "end": true})
	turn()
	if st := there.Status(); !st.Runs[0].Ended {
		t.Errorf("%+v", st.Runs)
	}
	for i := 8; i < 300; i += 20 { // blocks, of which the journal is emptied at once
		call(t, local, "/v1/samples", batch(c, testSession, i, i+19))
	}
	turn()
	if st := there.Status(); *st.Runs[0].Step < 140 {
		t.Errorf("step %d", *st.Runs[0].Step)
	}
	curve, err := there.Curve(t.Context(), testSession, 0, "allocated", c.now().Add(-1), c.now().Add(1e9), 1000)
	if err != nil || len(curve.Time) == 0 {
		t.Errorf("%v, %v", curve, err)
	}
}
