package oracle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/replay/recorded"
)

const (
	plainFile = "../../../testdata/oracle/lessons-default-1.json.gz"
	oomFile   = "../../../testdata/oracle/pressure-default-1.json.gz"
	poolFile  = "../../../testdata/verify/recordings/pools-0-1.json.gz"
)

func verified(t *testing.T, rec *Recording) *replay.Result {
	t.Helper()
	r, err := Verify(t.Context(), rec)
	if err != nil {
		t.Fatal(err)
	}
	if r.Identical != (r.First == nil) {
		t.Fatalf("identical %v, but first difference %v", r.Identical, r.First)
	}
	return r
}

// Whatever is changed in a recording, the comparison notices, and says where.
func TestTampered(t *testing.T) {
	tests := []struct {
		name, file string
		tamper     func(rec *Recording)
		kind       string
		says       []string
	}{
		{"alloc size", plainFile, func(r *Recording) { r.Trace[100].Size += 512 }, replay.DiffEvent, []string{"event 100: another event", "event 99:", "reserved"}},
		{"free action", plainFile, func(r *Recording) { r.Trace[311].Action = alloc.ActionSnapshot }, replay.DiffEvent, []string{"event 311", "expected: snapshot"}},
		{"event dropped", plainFile, func(r *Recording) { r.Trace = append(r.Trace[:300:300], r.Trace[301:]...) }, replay.DiffEvent, []string{"event 300"}},
		{"last event dropped", plainFile, func(r *Recording) { r.Trace = r.Trace[:len(r.Trace)-1] }, replay.DiffEvent, []string{"an event too many", "no further event"}},
		{"event added", plainFile, func(r *Recording) { r.Trace = append(r.Trace, r.Trace[0]) }, replay.DiffEvent, []string{"1 events are missing at the end"}},
		{"event of another operation", poolFile, func(r *Recording) { r.Trace[400].Op-- }, replay.DiffEvent, []string{"event 400"}},
		{"operation without its event", poolFile, func(r *Recording) { r.Trace[400].Op++ }, replay.DiffEvent, []string{"an event too many", "event 400", "in operation"}},
		{"address", plainFile, func(r *Recording) { r.Ops[3].Addr += 512 }, replay.DiffAddress, []string{"operation 3 (allocate tensor 4", "another address", "is in the large segment"}},
		{"should have failed", plainFile, func(r *Recording) { r.Ops[286] = r.Ops[0]; r.Ops[286].Failed = true }, replay.DiffEvent, nil},
		{"failed", plainFile, func(r *Recording) { r.Ops[3].Failed = true }, replay.DiffAddress, []string{"did not fail", "expected: out of memory"}},
		{"did not fail", oomFile, func(r *Recording) { firstFailed(r).Failed = false }, replay.DiffAddress, []string{"the allocation failed", "CUDA out of memory", "limit 3002197606"}},
		{"message", oomFile, func(r *Recording) { r.OOMMessages[2] = strings.Replace(r.OOMMessages[2], "GPU 0", "GPU 1", 1) }, replay.DiffMessage, []string{"GPU 1"}},
		{"device free", oomFile, func(r *Recording) { firstOOM(r).Addr -= 1 << 30 }, replay.DiffMessage, nil},
		{"pool id", poolFile, func(r *Recording) { firstPool(r).Pool.Second++ }, replay.DiffPool, []string{"(0,2)", "(0,1)"}},
		{"statistic", oomFile, func(r *Recording) { r.Checkpoints[3].Stats["active.small_pool.freed"]++ }, replay.DiffStatistic, []string{"checkpoint 3", "1 statistics differ", "active.small_pool.freed"}},
		{"statistic left out", oomFile, func(r *Recording) { delete(r.Checkpoints[3].Stats, "num_ooms") }, replay.DiffStatistic, []string{"num_ooms", "expected: 0"}},
		{"statistic unknown", oomFile, func(r *Recording) { r.Checkpoints[0].Stats["num_new"] = 1 }, replay.DiffStatistic, []string{"num_new", "got:      0"}},
		{"segment field", oomFile, func(r *Recording) { r.Segments[2].RequestedSize++ }, replay.DiffSegment, []string{"requested_size"}},
		{"segment missing", oomFile, func(r *Recording) { r.Segments = r.Segments[:len(r.Segments)-1] }, replay.DiffSegment, []string{"14 segments at the end instead of 13"}},
		{"segment extra", oomFile, func(r *Recording) { r.Segments = append(r.Segments, r.Segments[0]) }, replay.DiffSegment, []string{"14 segments at the end instead of 15"}},
		{"block state", oomFile, func(r *Recording) { b := r.Segments[0].Blocks; b[len(b)-1].State ^= 1 }, replay.DiffSegment, []string{"at the end, block"}},
		{"stale request", oomFile, func(r *Recording) { r.Segments[0].Blocks[0].RequestedSize++ }, replay.DiffSegment, []string{"block 0 of segment"}},
		{"limit", oomFile, func(r *Recording) { r.Fraction = 0.021 }, "", nil},
		{"settings", oomFile, func(r *Recording) { r.Conf = "max_split_size_mb:40" }, "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			rec := load(t, tt.file)
			tt.tamper(rec)
			r := verified(t, rec)
			if r.Identical {
				t.Fatal("not noticed")
			}
			if tt.kind != "" && r.First.Kind != tt.kind {
				t.Errorf("kind %q, want %q", r.First.Kind, tt.kind)
			}
			for _, s := range tt.says {
				if !strings.Contains(r.First.String(), s) {
					t.Errorf("does not say %q:\n%v", s, r.First)
				}
			}
		})
	}
}

func firstFailed(r *Recording) *Op {
	for i := range r.Ops {
		if r.Ops[i].Failed {
			return &r.Ops[i]
		}
	}
	panic("no failing allocation")
}

func firstPool(r *Recording) *Op {
	for i := range r.Ops {
		if r.Ops[i].Kind == OpNewPool {
			return &r.Ops[i]
		}
	}
	panic("no pool")
}

func firstOOM(r *Recording) *recorded.Event {
	for i := range r.Trace {
		if r.Trace[i].Action == alloc.ActionOOM {
			return &r.Trace[i]
		}
	}
	panic("no oom")
}

// Every field of every event counts.
func TestEveryFieldCounts(t *testing.T) {
	rec := load(t, plainFile)
	for i := 0; i < len(rec.Trace); i += 13 {
		for field := range 3 {
			e := rec.Trace[i]
			switch field {
			case 0:
				rec.Trace[i].Addr += 1 << 40
			case 1:
				rec.Trace[i].Size++
			case 2:
				rec.Trace[i].Stream++
			}
			if r := verified(t, rec); r.Identical || r.IdenticalEvents > i+1 {
				t.Errorf("event %d field %d changed: %d events identical", i, field, r.IdenticalEvents)
			}
			rec.Trace[i] = e
		}
	}
	if r := verified(t, rec); !r.Identical {
		t.Errorf("restored, but differs: %v", r.First)
	}
}

func TestVerifyAll(t *testing.T) {
	var sources []Source
	for i := range 8 {
		switch i % 4 {
		case 0:
			sources = append(sources, File(plainFile))
		case 1:
			sources = append(sources, Source{Name: "bad", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("x")), nil }})
		case 2:
			sources = append(sources, File(oomFile))
		case 3:
			d := doc()
			d["conf"] = `"nonsense:1"`
			sources = append(sources, Source{Name: "conf", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text(d))), nil }})
		}
	}
	var got []string
	err := VerifyAll(t.Context(), sources, Options{Device: AnyDevice}, func(i int, r *replay.Result, err error) {
		switch {
		case i != len(got):
			t.Errorf("result %d came as number %d", i, len(got))
		case err != nil:
			got = append(got, "error")
			if !strings.HasPrefix(err.Error(), sources[i].Name) {
				t.Errorf("error does not name the file: %v", err)
			}
		default:
			got = append(got, fmt.Sprintf("%v %v %v %d %d %d", r.File == sources[i].Name, r.Kind, r.Identical, r.Events, r.Checkpoints, r.Segments))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "[true recording true 545 1 0 error true recording true 8701 16 14 error]"
	if s := fmt.Sprint(got[:4]); s != want || fmt.Sprint(got[4:]) != want {
		t.Errorf("got %v", got)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("enough")
	cancel(stop)
	if _, err := Verify(ctx, load(t, plainFile)); !errors.Is(err, stop) {
		t.Errorf("Verify: %v", err)
	}
	err := VerifyAll(ctx, []Source{File(plainFile)}, Options{Device: AnyDevice}, func(int, *replay.Result, error) { t.Error("a result after the end") })
	if !errors.Is(err, stop) {
		t.Errorf("VerifyAll: %v", err)
	}
}

func BenchmarkVerify(b *testing.B) {
	for _, file := range []string{"../../../testdata/oracle/mixed-default-1.json.gz", "../../../testdata/oracle/pressure-expand-1.json.gz"} {
		b.Run(file[len("../../../testdata/oracle/"):], func(b *testing.B) {
			rec := load(b, file)
			for b.Loop() {
				if _, err := Verify(context.Background(), rec); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(rec.Trace)), "ns/event")
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		load(b, "../../../testdata/oracle/mixed-default-1.json.gz")
	}
}
