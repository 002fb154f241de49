package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hub"
	"github.com/ashlar-mem/ashlar/internal/view"
	"github.com/ashlar-mem/ashlar/internal/watch"
)

// Jobs answers about the jobs of a server. It is a [view.LiveAnswerer].
type Jobs struct{ Server *watch.Server }

// Answer answers a question of the screen: "" for the state, sketches, curves.
func (j Jobs) Answer(ctx context.Context, question string, q url.Values) (any, error) {
	now := time.Now()
	switch question {
	case "":
		st := j.Server.Status()
		return newState(&st, now.UnixMicro(), q.Get("job")), nil
	case "sketches":
		return j.sketches(ctx, now)
	case "curves":
		return j.curves(ctx, q, now)
	}
	return nil, view.ErrNoQuestion
}

// Snapshot opens the snapshot of an alarm.
func (j Jobs) Snapshot(ctx context.Context, name string) (io.Reader, error) {
	r, err := j.Server.Snapshot(ctx, name)
	if errors.Is(err, hub.ErrNone) {
		return nil, &view.QuestionError{Err: fmt.Errorf("there is no snapshot %.200q: the history may have come to --max-disk or --keep since", name)}
	}
	return r, err
}

// Sketches are the last hours of all jobs in small.
type Sketches struct {
	FromUS  int64    `json:"from_us"`
	PieceUS int64    `json:"piece_us"`
	Jobs    []Sketch `json:"jobs"`
}

// Sketch is the most of a job's ranks in each piece of time; -1 where
// nothing is known.
type Sketch struct {
	Key       string  `json:"key"`
	Allocated []int64 `json:"allocated_mib"`
	Reserved  []int64 `json:"reserved_mib"`
}

func (j Jobs) sketches(ctx context.Context, now time.Time) (*Sketches, error) {
	all, err := j.Server.Sketches(ctx, now)
	if err != nil {
		return nil, err
	}
	piece := watch.SketchPiece.Microseconds()
	out := &Sketches{FromUS: (now.UnixMicro()/piece - watch.SketchPieces + 1) * piece, PieceUS: piece, Jobs: []Sketch{}}
	st := j.Server.Status()
	job := map[string]string{}
	for i := range st.Runs {
		job[st.Runs[i].Session] = st.Runs[i].Job()
	}
	at := map[string]int{}
	for i := range all {
		key, known := job[all[i].Session]
		if !known {
			continue // it came after the state
		}
		n, ok := at[key]
		if !ok {
			n = len(out.Jobs)
			at[key] = n
			out.Jobs = append(out.Jobs, Sketch{key, nothing(), nothing()})
		}
		raise(out.Jobs[n].Allocated, all[i].Allocated[:])
		raise(out.Jobs[n].Reserved, all[i].Reserved[:])
	}
	return out, nil
}

func nothing() []int64 { return slices.Repeat([]int64{-1}, watch.SketchPieces) }

// raise keeps the larger of two lists, the second of which is in bytes.
func raise(most, bytes []int64) {
	for i, b := range bytes {
		if b >= 0 {
			b >>= 20
		}
		most[i] = max(most[i], b)
	}
}

// Curves are one number of all ranks of a job over time.
type Curves struct {
	Name    string  `json:"name"`
	FromUS  int64   `json:"from_us"`
	ToUS    int64   `json:"to_us"`
	PointUS int64   `json:"point_us"` // how far points are apart
	Ranks   []Curve `json:"ranks"`
}

// Curve is that of a GPU of a rank. A point stands for what was between it and the
// one before.
type Curve struct {
	Session string  `json:"session"`
	GPU     *int    `json:"gpu"`
	At      []int64 `json:"at_ms"` // after FromUS
	Low     []int64 `json:"min"`
	High    []int64 `json:"max"`
	Last    []int64 `json:"last"`
}

// maxTotal is how many points an answer has in all.
const maxTotal = 80_000

// curves answers for the whole job. Points lie at multiples of their distance, so
// that they stay as they are while time goes on.
func (j Jobs) curves(ctx context.Context, q url.Values, now time.Time) (*Curves, error) {
	from, err1 := strconv.ParseInt(q.Get("from_us"), 10, 64)
	to, err2 := strconv.ParseInt(q.Get("to_us"), 10, 64)
	points, err3 := strconv.Atoi(q.Get("points"))
	if err := errors.Join(err1, err2, err3); err != nil || points < 1 || points > 4000 || from < 0 || to <= from || to > now.Add(time.Hour).UnixMicro() {
		return nil, &view.QuestionError{Err: errors.New("from_us, to_us and points must be whole numbers: two times in order, and 1 to 4000")}
	}
	st := j.Server.Status()
	rows := slices.DeleteFunc(st.Runs, func(r watch.RunStatus) bool { return r.Job() != q.Get("job") })
	points = min(points, max(50, maxTotal/max(1, len(rows))))
	apart := max(1, (to-from)/int64(points))
	out := &Curves{Name: q.Get("name"), FromUS: from / apart * apart, ToUS: to, PointUS: apart, Ranks: []Curve{}}
	n := int((to-out.FromUS)/apart) + 1
	for i := range rows {
		r := &rows[i]
		gpu := -1
		if r.GPU != nil {
			gpu = *r.GPU
		}
		c, err := j.Server.Curve(ctx, r.Session, gpu, out.Name, time.UnixMicro(out.FromUS), time.UnixMicro(out.FromUS+int64(n)*apart-1), n)
		if err != nil {
			return nil, err
		}
		for k := range c.Time {
			c.Time[k] = (c.Time[k] - out.FromUS) / 1000
		}
		out.Ranks = append(out.Ranks, Curve{r.Session, r.GPU, c.Time, c.Low, c.High, c.Last})
	}
	return out, nil
}
