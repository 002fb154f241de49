package planted

import (
	"bytes"
	"fmt"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/replay/generate"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/snapshot"
)

// twinBases are recordings of programs that do not leak.
var twinBases = []string{"advice/llama_adam", "advice/moe_dense", "advice/adamw_seq2seq", "advice/teacher_fp32", "advice/rare_long_batch"}

// twins makes pairs of causes: one program that fails at two lines of its own
// code, under two limits.
func (w *writer) twins(each int) error {
	for i := range w.Twins {
		rec, err := openRecording(w.ctx, w.testdata, twinBases[i%len(twinBases)])
		if err != nil {
			return err
		}
		_, p, err := rec.run(w.ctx, nil)
		if err != nil {
			return err
		}
		history := w.history(rec)
		made := map[timeline.Frame]bool{}
		for part := 0.9; part > 0.2 && len(made) < 2; part -= 0.05 {
			var out bytes.Buffer
			if _, err := generate.Write(w.ctx, &out, rec.trace, generate.Options{Limit: uint64(part * float64(p.reserved))}); err != nil {
				continue // it does not fail there
			}
			open := func() (*snapshot.File, error) {
				return snapshot.Read(w.ctx, rec.name, bytes.NewReader(out.Bytes()), snapshot.Options{})
			}
			f, err := open()
			if err != nil {
				return err
			}
			line, ok := failedLine(f)
			if !ok || made[line] {
				continue
			}
			made[line] = true
			if err := w.cause(rec.name, open, history, each); err != nil {
				return err
			}
		}
		if len(made) < 2 {
			return fmt.Errorf("%s fails at one line only", rec.name)
		}
	}
	return nil
}

// failedLine returns the user's own line of the request that failed.
func failedLine(f *snapshot.File) (timeline.Frame, bool) {
	t := f.Traces[0]
	for i := range t.Events.Len() {
		if e := t.Events.At(i); e.Action == alloc.ActionOOM {
			site, ok := timeline.SiteOf(t, e.Stack)
			return site.User, ok && site.HasUser
		}
	}
	return timeline.Frame{}, false
}
