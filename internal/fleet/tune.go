package fleet

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ashlar-mem/ashlar/internal/answer/tune"
	"github.com/ashlar-mem/ashlar/internal/hub"
	"github.com/ashlar-mem/ashlar/internal/input"
)

// trialLife is how long the trials of a batch stay.
const trialLife = time.Hour

// tuneJob is a part of a batch, for a worker.
type tuneJob struct {
	Hash     string          `json:"hash"`
	Versions string          `json:"versions"`
	Batch    json.RawMessage `json:"batch"`
}

// tuneResult is what became of it.
type tuneResult struct {
	Trials []tune.Trial `json:"trials"`
	Error  string       `json:"error,omitempty"`
}

// Evaluator spreads batches of settings for a file over all workers. It fails if
// there are none.
func (st *Store) Evaluator(hash string) tune.Evaluator {
	search := rand.Text()
	batches := 0
	return func(ctx context.Context, b *tune.Batch) ([]tune.Trial, error) {
		slots, err := st.slots(ctx)
		if err != nil || slots == 0 {
			return nil, errors.Join(err, errors.New("nobody works"))
		}
		batches++
		size := max(1, (len(b.Settings)+2*slots-1)/(2*slots)) // twice as many parts as slots: some settings take longer
		var subjects []string
		for from := 0; from < len(b.Settings); from += size {
			part := *b
			part.Settings = b.Settings[from:min(from+size, len(b.Settings))]
			subject := fmt.Sprintf("%s_%d_%d", search, batches, from)
			if err := st.pushTune(ctx, subject, hash, &part); err != nil {
				return nil, err
			}
			subjects = append(subjects, subject)
		}
		return st.collect(ctx, subjects)
	}
}

func (st *Store) pushTune(ctx context.Context, subject, hash string, b *tune.Batch) error {
	batch, err := json.Marshal(b)
	if err != nil {
		return err
	}
	data, err := json.Marshal(tuneJob{hash, versions(), batch})
	if err != nil {
		return err
	}
	return st.tuning.Push(ctx, subject, data)
}

// slots is how many processes work.
func (st *Store) slots(ctx context.Context) (n int, err error) {
	err = st.workers.Each(ctx, 0, func(m hub.Message) error {
		var w Worker
		if json.Unmarshal(m.Data, &w) == nil {
			n += w.Jobs
		}
		return nil
	})
	return n, err
}

// collect waits for the parts of a batch, for as long as anybody works.
func (st *Store) collect(ctx context.Context, subjects []string) (all []tune.Trial, err error) {
	for _, subject := range subjects {
		r, err := st.awaitTrials(ctx, subject)
		if err == nil && r.Error != "" {
			err = errors.New(r.Error)
		}
		if err != nil {
			for _, s := range subjects {
				st.tuning.Remove(context.WithoutCancel(ctx), s) // nobody waits for them now
			}
			return nil, err
		}
		all = append(all, r.Trials...)
	}
	return all, nil
}

func (st *Store) awaitTrials(ctx context.Context, subject string) (tuneResult, error) {
	wait, looked := time.Millisecond, time.Now()
	for {
		r, err := read[tuneResult](ctx, st.trials, subject)
		if !errors.Is(err, hub.ErrNone) {
			return r, err
		}
		sleep(ctx, wait)
		if ctx.Err() != nil {
			return r, context.Cause(ctx)
		}
		wait = min(wait*3/2, 50*time.Millisecond)
		if time.Since(looked) > workerLife {
			if n, err := st.slots(ctx); err != nil || n == 0 {
				return r, errors.Join(err, errors.New("all workers have gone"))
			}
			looked = time.Now()
		}
	}
}

// doTune tries a part of a batch.
func (w *worker) doTune(ctx context.Context, job *hub.Job, c **child) error {
	var t tuneJob
	if err := json.Unmarshal(job.Data, &t); err != nil {
		return job.Done(ctx)
	}
	if newer(t.Versions) {
		return &NewerError{t.Versions}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go w.beat(ctx, job)
	if _, err := w.trials.Last(ctx, job.Subject); err == nil {
		return job.Done(ctx)
	}
	r, err := w.try(ctx, &t, job.Subject, job.Delivered, c)
	if err != nil {
		return err
	}
	if err := create(ctx, w.trials, job.Subject, r); err != nil && !errors.Is(err, hub.ErrMoved) {
		return err
	}
	return job.Done(ctx)
}

// try has the child try settings. It loads the file once.
func (w *worker) try(ctx context.Context, t *tuneJob, subject string, delivered int, c **child) (tuneResult, error) {
	ask := task{Hash: t.Hash, Batch: t.Batch}
	if *c == nil || (*c).loaded != t.Hash {
		f, err := w.file(ctx, t.Hash)
		if err != nil {
			return tuneResult{Error: err.Error()}, nil
		}
		path, remove, err := w.fetch(ctx, f, delivered)
		if err != nil {
			return tuneResult{Error: err.Error()}, nil
		}
		defer remove()
		ask.Path, ask.Name = path, f.Name
	}
	if err := w.needChild(c); err != nil {
		return tuneResult{}, err
	}
	gone, ended, err := w.begin(ctx, subject, delivered)
	if err != nil {
		return tuneResult{}, err
	}
	if gone >= maxStrikes {
		return tuneResult{Error: "workers die of it"}, nil
	}
	reply, err := (*c).ask(ctx, ask)
	var died *strike
	if !errors.As(err, &died) { // else it counts, as if the whole of the worker had
		ended()
	}
	if err != nil {
		*c = nil
		return tuneResult{}, err
	}
	(*c).loaded = t.Hash
	var r tuneResult
	return r, json.Unmarshal(reply.Trials, &r)
}

// tuner tries settings in a child. It keeps the last file.
type tuner struct {
	hash string
	file *tune.File
}

// try answers a task.
func (t *tuner) try(ctx context.Context, k *task) (r tuneResult) {
	if err := t.load(ctx, k); err != nil {
		return tuneResult{Error: err.Error()}
	}
	var b tune.Batch
	if err := json.Unmarshal(k.Batch, &b); err != nil {
		return tuneResult{Error: err.Error()}
	}
	trials, err := b.Try(ctx, t.file.Run, 0)
	if err != nil {
		return tuneResult{Error: err.Error()}
	}
	return tuneResult{Trials: trials}
}

func (t *tuner) load(ctx context.Context, k *task) error {
	if t.hash == k.Hash && t.file != nil {
		return nil
	}
	*t = tuner{}
	in, err := input.Open(ctx, k.Path, input.Options{})
	if err != nil {
		return err
	}
	file, err := LoadTune(ctx, in, k.Name)
	if err != nil {
		return err
	}
	*t = tuner{k.Hash, file}
	return nil
}

// LoadTune prepares an input for a search, under a name.
func LoadTune(ctx context.Context, in *input.Input, name string) (*tune.File, error) {
	if in.Snapshot == nil {
		return nil, fmt.Errorf("%s is %s: give a memory snapshot", name, in.Kind.Words())
	}
	in.Snapshot.Name = name
	return tune.Load(ctx, in.Snapshot, input.AnyDevice)
}

// Tuner tunes files of the fleet with all its workers.
type Tuner struct {
	Index    *Index
	Question tune.Question // Evaluate aside

	mu   sync.Mutex
	hash string
	file *tune.File
}

// Load reads a file of the fleet; the last one is kept.
func (t *Tuner) Load(ctx context.Context, hash string) (*tune.File, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.hash == hash {
		return t.file, nil
	}
	in, err := t.Index.Open(ctx, hash)
	if err != nil {
		return nil, err
	}
	file, err := LoadTune(ctx, in, in.Name)
	if err != nil {
		return nil, err
	}
	t.hash, t.file = hash, file
	return file, nil
}

// Document is the answer of ashlar tune about a file.
func (t *Tuner) Document(ctx context.Context, hash string) (*tune.Document, error) {
	f, err := t.Load(ctx, hash)
	if err != nil {
		return nil, err
	}
	q := t.Question
	q.Evaluate = t.Index.store.Evaluator(hash)
	return f.Ask(ctx, q)
}

// Tune is for answers.Tune.
func (t *Tuner) Tune(ctx context.Context, hash string) (*tune.Answer, error) {
	d, err := t.Document(ctx, hash)
	if d == nil {
		return nil, err
	}
	return d.Answer, nil
}

// Measure is for answers.Tune.
func (t *Tuner) Measure(ctx context.Context, hash string, settings []string) ([]*tune.Choice, error) {
	f, err := t.Load(ctx, hash)
	if err != nil {
		return nil, err
	}
	return f.Measure(ctx, t.Question.DeviceMemory, settings)
}
