package watch

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
)

// A process that does not send is watched by what the driver says, marked so, until
// it is gone or says hello itself.
func TestWatchProcesses(t *testing.T) {
	c := newClock()
	s := newTestServer(t, newTestHub(t, t.TempDir()), c, "big: reserved > 5GiB -> log")
	var said []string
	s.opts.Log = func(text string) { said = append(said, text) }
	o := &outside{server: s, host: "machine", seen: map[string]time.Time{}, on: map[string]bool{}}
	card := Device{Index: 2, Name: "card", UUID: "GPU-2", Total: 80 << 30}
	all := []Process{
		{PID: 7, Name: "job", GPU: card, Used: 1 << 30, Free: 50 << 30}, // it sends
		{PID: 8, Name: "serve", Started: 5, GPU: card, Used: 6 << 30, Free: 50 << 30},
		{PID: 8, Name: "serve", Started: 5, GPU: Device{Index: 3, UUID: "GPU-3", Total: 80 << 30}, Used: 2 << 30, Free: 70 << 30},
	}
	list := func() ([]Process, error) { return all, nil }
	hello(t, s, testSession, 0)
	call(t, s, "/v1/samples", batch(c, testSession, 1, 1))
	for range 3 + int(outsideAfter.Seconds()) {
		o.round(t.Context(), list)
		c.add(time.Second)
	}
	var rows []RunStatus
	for _, r := range s.Status().Runs {
		if r.Source == FromNVML {
			rows = append(rows, r)
		}
	}
	if len(rows) != 2 || rows[0].PID != 8 || *rows[0].GPU != 2 || *rows[0].ReservedBytes != 6<<30 || rows[0].AllocatedBytes != nil || len(rows[0].Alarms) != 1 {
		t.Fatalf("%+v", rows)
	}
	if got := seqs(t, s.store, rows[0].Session); len(got) != 6 || got[5] != 3 { // two GPUs
		t.Errorf("stored: %v", got)
	}
	var page bytes.Buffer
	if err := s.WriteMetrics(&page); err != nil {
		t.Fatal(err)
	}
	if text := page.String(); !strings.Contains(text, `ashlar_process_used_bytes{run="serve",attempt="0",rank="0",gpu="2",UUID="GPU-2",host="machine"} 6.442450944e+09`) ||
		strings.Contains(text, `ashlar_reserved_bytes{run="serve"`) {
		t.Error(text)
	}
	all = all[:1]
	o.round(t.Context(), list)
	if st := s.Status(); len(st.Runs) != 1 || st.Alarms[0].ClearedUS == nil {
		t.Errorf("after its end: %+v", st)
	}
	said = nil
	for range 3 {
		o.round(t.Context(), func() ([]Process, error) { return nil, errors.New("no driver") })
	}
	if len(said) != 1 {
		t.Errorf("a failure was told %d times", len(said))
	}
}
