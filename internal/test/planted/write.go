package planted

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/snapshot/recorder"
	"github.com/ashlar-mem/ashlar/trace"
)

// writer makes one fleet.
type writer struct {
	Params
	ctx      context.Context
	testdata string
	dir      string
	rng      *rand.Rand
	commits  []string
	programs []string // of the runs
	truth    *Truth
}

// Write makes a fleet from the recordings in testdata. The same parameters make
// the same bytes.
func Write(ctx context.Context, testdata, dir string, p Params) (*Truth, error) {
	w := &writer{Params: p, ctx: ctx, testdata: testdata, dir: dir, rng: rand.New(rand.NewPCG(p.Seed, 26)), truth: &Truth{}}
	for range p.Commits {
		var id [6]byte
		for i := range id {
			id[i] = byte(w.rng.UintN(256))
		}
		w.commits = append(w.commits, hex.EncodeToString(id[:]))
	}
	if err := w.runs(); err != nil {
		return nil, err
	}
	return w.truth, w.failures()
}

// runs makes the files of all launches, run by run.
func (w *writer) runs() error {
	names := w.Bases
	if len(names) == 0 {
		names = slices.Clone(bases)
	}
	w.rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	var r *plantedRun
	for _, l := range w.plan(w.rng) {
		if r == nil || r.number != l.run {
			rec, err := openRecording(w.ctx, w.testdata, names[l.run%len(names)])
			if err != nil {
				return err
			}
			w.programs = append(w.programs, rec.name)
			r = &plantedRun{writer: w, number: l.run, recording: rec, held: rec.heldAtPeak(), history: w.history(rec)}
			if len(r.held) == 0 {
				return fmt.Errorf("%s has no call stacks to plant anything at", rec.name)
			}
		}
		if err := r.launch(&l); err != nil {
			return err
		}
	}
	return nil
}

// history returns the files of a program at each commit.
func (w *writer) history(r *recording) []source {
	out := []source{newSource(r)}
	for len(out) < w.Commits {
		out = append(out, out[len(out)-1].edited(w.rng))
	}
	return out
}

// plantedRun is one run over its commits.
type plantedRun struct {
	*writer
	number    int
	recording *recording
	held      []holder
	history   []source
	sizes     factors
	before    *peaks
}

// launch makes the files of one launch.
func (r *plantedRun) launch(l *launchPlan) error {
	if err := r.change(l); err != nil {
		return err
	}
	for _, rank := range l.ranks {
		f, err := r.rank(slices.Contains(l.odd, rank), l, rank)
		if err != nil {
			return err
		}
		r.history[l.commit].apply(f, fmt.Sprintf("/home/user%d/%s", rank%3, runName(l.run)))
		of := File{
			Path: fmt.Sprintf("%s/%s/rank-%03d.pickle.gz", runName(l.run), r.commits[l.commit], rank),
			Run:  runName(l.run), Rank: rank, World: int64(r.Ranks), Commit: r.commits[l.commit], TimeUS: timeOf(l.commit, l.run) + rank,
		}
		if err := r.write(f, of, "call"); err != nil {
			return err
		}
	}
	return nil
}

// maxTries is how often a change is drawn until it does what was asked for.
const maxTries = 60

// change makes the commit's change to the sizes of the run. The peak must change
// as much as is said: another moment may become the peak.
func (r *plantedRun) change(l *launchPlan) error {
	if r.before == nil {
		_, p, err := r.recording.run(r.ctx, nil)
		r.before = p
		return err
	}
	if l.kind == onlyLines {
		return nil
	}
	for range maxTries {
		var share, least, most float64
		switch l.kind {
		case grows:
			share = r.GrowLeast + r.rng.Float64()*(r.GrowMost-r.GrowLeast)
			least, most = r.GrowLeast*0.95, r.GrowMost*1.1
		case growsLittle:
			share, least, most = 0.002+0.004*r.rng.Float64(), 0, 0.007
		case shrinks:
			share, least, most = -0.02-0.1*r.rng.Float64(), -0.5, -0.01
		}
		stack, sizes, ok := r.scaled(r.sizes, share)
		if !ok {
			continue
		}
		_, p, err := r.recording.run(r.ctx, sizes)
		if err != nil {
			return err
		}
		got := ratio(p.allocated, r.before.allocated)
		reserved := ratio(p.reserved, r.before.reserved)
		if got < least || got > most || l.kind != grows && reserved > 0.007 {
			continue
		}
		if l.kind == grows {
			r.truth.Grown = append(r.truth.Grown, r.grown(l, stack, got))
		}
		r.sizes, r.before = sizes, p
		return nil
	}
	l.kind = onlyLines
	return nil
}

func (r *plantedRun) grown(l *launchPlan, stack trace.StackID, share float64) Grown {
	site, _ := timeline.SiteOf(r.recording.trace, stack)
	return Grown{runName(l.run), r.commits[l.commit], share, filepath.Base(site.User.Filename), site.User.Name}
}

// ratio returns by which part a number is larger than another.
func ratio(a, b uint64) float64 { return float64(a)/float64(b) - 1 }

// scaled draws a stack and makes its requests larger so that the peak grows by a
// share; false if that takes too much.
func (r *plantedRun) scaled(sizes factors, share float64) (trace.StackID, factors, bool) {
	h := r.held[int(math.Sqrt(r.rng.Float64()*float64(len(r.held))))] // rather a large one
	by := 1 + share*float64(r.before.allocated)/float64(h.bytes)
	return h.stack, sizes.with(h.stack, by), by > 0.1 && by < 8
}

// rank makes the file of one rank.
func (r *plantedRun) rank(odd bool, l *launchPlan, rank int64) (*snapshot.File, error) {
	if odd {
		return r.oddRank(l, rank)
	}
	if r.Scatter > 0 && r.rng.IntN(3) == 0 {
		if _, sizes, ok := r.scaled(r.sizes, r.Scatter*(2*r.rng.Float64()-1)); ok {
			f, p, err := r.recording.run(r.ctx, sizes)
			// A few bytes can take another segment: that would be odd indeed.
			if err != nil || math.Abs(ratio(p.allocated, r.before.allocated)) < 2*r.Scatter &&
				math.Abs(ratio(p.reserved, r.before.reserved)) < 0.005 && math.Abs(float64(p.events-r.before.events)) <= 0.005*float64(r.before.events) {
				return f, err
			}
		}
	}
	f, _, err := r.recording.run(r.ctx, r.sizes)
	return f, err
}

// oddRank makes a rank that asks for more than the others, or for less.
func (r *plantedRun) oddRank(l *launchPlan, rank int64) (*snapshot.File, error) {
	for range maxTries {
		share := 0.03 + 0.3*r.rng.Float64()
		if r.rng.IntN(4) == 0 {
			share = -share / 2
		}
		_, sizes, ok := r.scaled(r.sizes, share)
		if !ok {
			continue
		}
		f, p, err := r.recording.run(r.ctx, sizes)
		if err != nil {
			return nil, err
		}
		if got := ratio(p.allocated, r.before.allocated); math.Abs(got) > 0.025 {
			r.truth.Odd = append(r.truth.Odd, Odd{runName(l.run), r.commits[l.commit], rank, got})
			return f, nil
		}
	}
	f, _, err := r.recording.run(r.ctx, r.sizes)
	return f, err
}

// failures makes the files that failed. Every cause is a recording of its own.
func (w *writer) failures() error {
	names := slices.Clone(w.Failures)
	if len(names) == 0 {
		all, err := filepath.Glob(filepath.Join(w.testdata, "advice", "*.pickle.gz"))
		if err != nil {
			return err
		}
		for _, f := range all {
			name := strings.TrimSuffix(filepath.Base(f), ".pickle.gz")
			if !strings.HasPrefix(name, "healthy") && name != "empty_cache_every_step" {
				names = append(names, "advice/"+name)
			}
		}
	}
	w.rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	each := int(float64(w.Files)*w.Failed) / max(1, w.Causes+2*w.Twins)
	for _, name := range names[:min(w.Causes, len(names))] {
		rec, err := openRecording(w.ctx, w.testdata, name)
		if err != nil {
			return err
		}
		open := func() (*snapshot.File, error) {
			rec, err := openRecording(w.ctx, w.testdata, name)
			if err != nil {
				return nil, err
			}
			return rec.file, nil
		}
		if err := w.cause(rec.name, open, w.history(rec), each); err != nil {
			return err
		}
	}
	return w.twins(each)
}

// cause makes some files of one failure, at random commits, runs and ranks. No two
// causes have the same number of files, which shows if some were exchanged. They
// are in no run of the same program: what is larger there has grown indeed.
func (w *writer) cause(program string, open func() (*snapshot.File, error), history []source, files int) error {
	number := len(w.truth.Causes)
	var out []string
	for i := range files + number {
		commit, run, rank := w.rng.IntN(w.Commits), w.rng.IntN(w.Runs), w.rng.IntN(w.Ranks)
		if w.programs[run] == program {
			run = w.Runs
		}
		of := File{
			Path: fmt.Sprintf("oom/%s/cause-%d-%03d.pickle.gz", runName(run), number, i),
			Run:  runName(run), Attempt: int64(1 + number), Rank: int64(rank), World: int64(w.Ranks), Commit: w.commits[commit],
			TimeUS: timeOf(commit, run) + int64(1e9+i),
		}
		f, err := open()
		if err != nil {
			return err
		}
		history[commit].apply(f, fmt.Sprintf("/home/user%d/%s", rank%3, runName(run)))
		if err := w.write(f, of, recorder.OOM); err != nil {
			return err
		}
		out = append(out, of.Path)
	}
	w.truth.Causes = append(w.truth.Causes, out)
	return nil
}

// write writes a file with the facts that a recorder adds.
func (w *writer) write(f *snapshot.File, of File, reason string) error {
	facts, ok := f.Extra.Get(recorder.Key).(trace.Extra)
	if !ok {
		facts = trace.Extra{{Name: "version", Value: int64(1)}, {Name: "reason", Value: reason}}
	}
	facts = slices.Clone(facts)
	for _, add := range []trace.Field{
		{Name: "time_us", Value: of.TimeUS},
		{Name: "rank", Value: of.Rank},
		{Name: "run", Value: of.Run},
		{Name: "attempt", Value: of.Attempt},
		{Name: "world", Value: of.World},
		{Name: "commit", Value: of.Commit},
	} {
		i := slices.IndexFunc(facts, func(f trace.Field) bool { return f.Name == add.Name })
		if i < 0 {
			facts = append(facts, add)
		} else {
			facts[i] = add
		}
	}
	f.Extra = append(slices.DeleteFunc(slices.Clone(f.Extra), func(x trace.Field) bool { return x.Name == recorder.Key }),
		trace.Field{Name: recorder.Key, Value: facts})
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		return err
	}
	if err := snapshot.WritePickle(z, f); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	path := filepath.Join(w.dir, filepath.FromSlash(of.Path))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	w.truth.Files = append(w.truth.Files, of)
	return os.WriteFile(path, out.Bytes(), 0o644)
}
