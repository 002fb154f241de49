package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hub"
)

// WorkOptions say how files are analysed.
type WorkOptions struct {
	Jobs      int // processes at once
	MaxMemory uint64
	MaxTime   time.Duration
	// Command starts a process that calls [RunChild].
	Command []string
	Log     func(text string)
}

// What a file may do to its workers before it is set aside.
const (
	maxStrikes = 3
	// maxBegun is for a file that takes the whole of its worker along, so that
	// nobody counts a strike.
	maxBegun = 10
)

// How long a slot waits for a file before it looks whether there are settings to
// try; longer when nothing has come for a while.
const (
	leastIdle = 250 * time.Millisecond
	mostIdle  = 2 * time.Second
)

// worker takes jobs from the queue.
type worker struct {
	*Store
	options WorkOptions
	started time.Time
	doing   atomic.Int64
	silent  sync.Map // what was logged already

	mu       sync.Mutex
	gone     time.Time // since when there is no server; zero if there is one
	saidGone bool
}

// Work analyses files until the context ends.
func (st *Store) Work(ctx context.Context, o WorkOptions) error {
	w := &worker{Store: st, options: o, started: time.Now()}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	all.Go(func() { w.announce(ctx) })
	for range o.Jobs {
		all.Go(func() {
			if err := w.loop(ctx); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// Worker is one that said lately that it works.
type Worker struct {
	Host      string `json:"host"`
	PID       int    `json:"pid"`
	Jobs      int    `json:"jobs"`
	Doing     int    `json:"doing"`
	StartedUS int64  `json:"started_us"`
}

// announce says that this worker works.
func (w *worker) announce(ctx context.Context) {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	id := hex.EncodeToString([]byte(host)) + "-" + strconv.Itoa(os.Getpid())
	tick := time.NewTicker(workerLife / 3)
	defer tick.Stop()
	for {
		// What fails here is said by those who work.
		replace(ctx, w.workers, id, Worker{host, os.Getpid(), w.options.Jobs, int(w.doing.Load()), w.started.UnixMicro()})
		select {
		case <-ctx.Done():
			end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			w.workers.Purge(end, id, 0)
			return
		case <-tick.C:
		}
	}
}

// say logs a text that is not the last one of its kind.
func (w *worker) say(kind, text string) {
	if last, _ := w.silent.Swap(kind, text); last != text && text != "" {
		w.options.Log(text)
	}
}

// loop is one slot: it has a child, and does one job after the other.
func (w *worker) loop(ctx context.Context) error {
	var c *child
	defer func() {
		if c != nil {
			c.end()
		}
	}()
	var tuned time.Time // when the last batch of settings was tried
	idle := leastIdle
	for ctx.Err() == nil {
		do, tunes := w.doTune, true
		job, err := w.tuning.Pull(ctx, ifRecent(tuned))
		if errors.Is(err, hub.ErrNone) {
			do, tunes = w.do, false
			job, err = w.queue.Pull(ctx, idle-ifRecent(tuned))
		}
		w.watchServer(ctx)
		if job == nil {
			if err != nil && !errors.Is(err, hub.ErrNone) && w.hub.Connected() && ctx.Err() == nil {
				w.say("pull", "no job comes: "+err.Error())
				sleep(ctx, time.Second)
			}
			idle = min(2*idle, mostIdle)
			continue
		}
		w.say("pull", "")
		idle = leastIdle
		w.doing.Add(1)
		err = do(ctx, job, &c)
		w.doing.Add(-1)
		if tunes {
			tuned = time.Now()
		}
		var newer *NewerError
		if errors.As(err, &newer) {
			job.Return(0)
			return err
		}
		if err != nil && ctx.Err() == nil {
			w.say("job", fmt.Sprintf("%.12s is tried again: %v", job.Subject, err))
			job.Return(time.Second)
		}
	}
	return nil
}

// goneTime is how long a worker waits before it says that its server has gone.
const goneTime = 2 * time.Second

// watchServer says that the server has gone, and that it is back.
func (w *worker) watchServer(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch connected := w.hub.Connected(); {
	case ctx.Err() != nil:
	case connected && w.saidGone:
		w.options.Log("the server of the fleet is back")
		w.gone, w.saidGone = time.Time{}, false
	case connected:
		w.gone = time.Time{}
	case w.gone.IsZero():
		w.gone = time.Now()
	case !w.saidGone && time.Since(w.gone) > goneTime:
		w.saidGone = true
		w.options.Log("the server of the fleet (" + w.hub.Name() + ") has gone: this worker waits for it; ashlar fleet serve starts one")
	}
}

// ifRecent is how long a slot waits for settings to try: whoever has sent a batch
// sends the next soon.
func ifRecent(tuned time.Time) time.Duration {
	if time.Since(tuned) < 5*time.Second {
		return leastIdle / 2
	}
	return 0
}

// NewerError says that a job needs a later version of this program.
type NewerError struct{ Wanted string }

func (e *NewerError) Error() string {
	return fmt.Sprintf("jobs come from a newer ashlar (questions %s, this one knows %s); update ashlar here", e.Wanted, versions())
}

// newer reports whether versions are later than those of this program.
func newer(wanted string) bool {
	ours, theirs := strings.Split(versions(), "-"), strings.Split(wanted, "-")
	if len(theirs) > len(ours) {
		return true
	}
	for i, t := range theirs {
		a, _ := strconv.Atoi(t)
		if b, _ := strconv.Atoi(ours[i]); a > b {
			return true
		}
	}
	return false
}

// do does one job, and says meanwhile that it is at it.
func (w *worker) do(ctx context.Context, job *hub.Job, c **child) error {
	if newer(string(job.Data)) {
		return &NewerError{string(job.Data)}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go w.beat(ctx, job)
	hash := job.Subject
	switch _, err := w.rows.Last(ctx, rowSubject(hash)); {
	case err == nil:
		return job.Done(ctx)
	case !errors.Is(err, hub.ErrNone):
		return err
	}
	f, err := w.file(ctx, hash)
	if errors.Is(err, hub.ErrNone) { // it was removed
		return job.Done(ctx)
	}
	if err != nil {
		return err
	}
	a, err := w.analyse(ctx, f, job.Delivered, c)
	if err != nil {
		return err
	}
	for {
		if err = w.commit(ctx, hash, a); err == nil {
			w.say("commit", "")
			return job.Done(ctx)
		}
		if ctx.Err() != nil {
			return err
		}
		w.say("commit", "a result cannot be stored yet: "+err.Error())
		sleep(ctx, time.Second)
	}
}

// beat says that a job is being done, until the context ends.
func (w *worker) beat(ctx context.Context, job *hub.Job) {
	tick := time.NewTicker(w.jobWait / 4)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			job.Beat() // the next one may come through
		}
	}
}

// needChild starts a child if there is none.
func (w *worker) needChild(c **child) (err error) {
	if *c != nil {
		return nil
	}
	if *c, err = startChild(w.child()); err != nil {
		*c = nil
		return fmt.Errorf("no process can be started: %w", err)
	}
	return nil
}

// analyse answers the questions about a file. An error means: later, or
// elsewhere.
func (w *worker) analyse(ctx context.Context, f *File, delivered int, c **child) (*Analysis, error) {
	strikes, err := read[[]string](ctx, w.strikes, f.Hash)
	if err != nil && !errors.Is(err, hub.ErrNone) {
		return nil, err
	}
	if len(strikes) >= maxStrikes {
		return failedAnalysis(fmt.Sprintf("set aside after %d tries: %s", len(strikes), strikes[len(strikes)-1]), true), nil
	}
	path, remove, err := w.fetch(ctx, f, delivered)
	var bad *refusal
	if errors.As(err, &bad) {
		return failedAnalysis(bad.Error(), false), nil
	}
	if err != nil {
		return nil, err
	}
	defer remove()
	if err := w.needChild(c); err != nil {
		return nil, err
	}
	gone, ended, err := w.begin(ctx, f.Hash, delivered)
	if err != nil {
		return nil, err
	}
	if gone >= maxBegun {
		return failedAnalysis(fmt.Sprintf("set aside: %d workers went away with it", gone), true), nil
	}
	defer ended()
	a, err := (*c).analyse(ctx, task{Path: path, Name: f.Name})
	var s *strike
	if errors.As(err, &s) {
		*c = nil
		strikes = append(strikes, s.Error())
		if err := replace(ctx, w.strikes, f.Hash, strikes); err != nil {
			return nil, err
		}
		w.options.Log(fmt.Sprintf("%s (%.12s), try %d: %v", f.Name, f.Hash, len(strikes), s))
	}
	if err != nil && ctx.Err() != nil {
		*c = nil
	}
	return a, err
}

// begin notes that a worker is at something that was delivered before, and returns
// how many were and went away. A delivery alone tells nothing: the store may have
// been out of reach, or its disk full. Whoever comes to an end, in whatever way,
// calls ended.
func (w *worker) begin(ctx context.Context, what string, delivered int) (gone int, ended func(), err error) {
	if delivered <= maxStrikes {
		return 0, func() {}, nil
	}
	subject := begunSubject(what)
	gone, err = read[int](ctx, w.strikes, subject)
	if errors.Is(err, hub.ErrNone) {
		err = nil
	}
	if err == nil {
		err = replace(ctx, w.strikes, subject, gone+1)
	}
	return gone, func() { w.strikes.Purge(context.WithoutCancel(ctx), subject, 0) }, err // one that stays counts once more
}

func begunSubject(what string) string { return what + "_begun" }

func (w *worker) child() childOptions {
	procs := max(1, runtime.NumCPU()/max(1, w.options.Jobs))
	env := []string{"GOMAXPROCS=" + strconv.Itoa(procs)}
	if m := w.options.MaxMemory; m > 0 {
		env = append(env, "GOMEMLIMIT="+strconv.FormatUint(m-m/8, 10))
	}
	return childOptions{command: w.options.Command, env: env, maxMemory: w.options.MaxMemory, maxTime: w.options.MaxTime}
}

// fetch returns where the bytes of a file are. The error is a *refusal if they are
// not what was added.
func (w *worker) fetch(ctx context.Context, f *File, delivered int) (path string, remove func(), err error) {
	if f.Path != "" {
		hash, _, err := hashFile(f.Path)
		switch {
		case err != nil && delivered <= maxStrikes:
			return "", nil, err // perhaps this machine alone cannot see it
		case err != nil:
			return "", nil, refuse("%w: add the file again from where it is now", err)
		case hash != f.Hash:
			w.markDamaged(ctx, f.Hash)
			return "", nil, refuse("%s has changed since it was added", f.Path)
		}
		return f.Path, func() {}, nil
	}
	temp, err := newTemp()
	if err != nil {
		return "", nil, err
	}
	h := sha256.New()
	r, err := w.open(ctx, f)
	if err == nil {
		_, err = io.Copy(io.MultiWriter(temp.file, h), r)
	}
	switch {
	case errors.Is(err, hub.ErrNone):
		err = refuse("its bytes are not in the store any more: add the file again")
	case errors.Is(err, hub.ErrDamaged), err == nil && hex.EncodeToString(h.Sum(nil)) != f.Hash:
		w.markDamaged(ctx, f.Hash)
		err = refuse("its bytes in the store are damaged: add the file again")
	}
	if err != nil {
		temp.close()
		return "", nil, err
	}
	return temp.path, temp.close, nil
}

// open reads the bytes of a file.
func (st *Store) open(ctx context.Context, f *File) (io.Reader, error) {
	if f.Alarm != "" {
		return st.alarms.Get(ctx, f.Alarm)
	}
	return st.objects.Get(ctx, f.Hash)
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
