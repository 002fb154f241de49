package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hub"
)

// Options say how jobs are watched.
type Options struct {
	Keep        time.Duration
	MaxDisk     uint64
	MaxSnapshot int64
	Rules       []*Rule
	Schema      int // of the documents of ashlar, which that of the state has as well
	// Log gets what the user should know; Sampled and Alarmed each sample and
	// each alarm that is raised or cleared. All may be nil.
	Log     func(text string)
	Sampled func(Sample)
	Alarmed func(Alarm)
	// Stored gets each snapshot that a job sent and that is stored; it may be nil.
	Stored func(ctx context.Context, s StoredSnapshot) error
	// Now is the clock; nil for the machine's.
	Now func() time.Time
}

// StoredSnapshot is one that a job sent because of an alarm.
type StoredSnapshot struct {
	Name   string // in the store
	SHA256 string // in hex
	Bytes  int64
	Job    Hello
}

// Server watches jobs.
type Server struct {
	opts  Options
	store *store

	mu       sync.Mutex
	sessions map[string]*session
	loading  map[string]chan struct{} // closed when a session was read
	engine   *engine
	alarms   map[string]*Alarm
	acted    map[string]time.Time // when an action was last done, by what and for whom
	running  map[string]bool      // commands of alarms, by what [actionID] calls them
	counts   counts
	work     sync.WaitGroup

	sketching sync.Mutex // held while sketches are read

	commandTime time.Duration // that a command of an alarm may take
}

// counts are what came and could not be taken as it is.
type counts struct {
	refused, later, jumps, requests int64
	shrunk                          bool
}

// How long a session that sends nothing stays in memory, and is read again when
// a server starts; and how many do, those that were seen last. One that is dropped is read again when it sends.
const (
	forgetAfter  = 24 * time.Hour
	recent       = time.Hour
	mostSessions = 16_384
)

// NewServer opens the store. Run must be called.
func NewServer(ctx context.Context, h *hub.Hub, o Options) (*Server, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	st, err := openStore(ctx, h, o.Keep)
	if err != nil {
		return nil, err
	}
	s := &Server{
		opts: o, store: st, sessions: map[string]*session{}, loading: map[string]chan struct{}{},
		engine: newEngine(o.Rules), alarms: map[string]*Alarm{}, acted: map[string]time.Time{}, running: map[string]bool{},
		commandTime: commandTime,
	}
	return s, s.readAlarms(ctx)
}

// Run keeps the store in bounds and looks for silent jobs until the context ends.
func (s *Server) Run(ctx context.Context) {
	follow := s.follow(ctx)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			s.work.Wait()
			return
		case <-tick.C:
		}
		follow(ctx)
		now := s.opts.Now()
		s.mu.Lock()
		changes := s.engine.tick(now)
		s.mu.Unlock()
		s.act(ctx, changes)
		if n%60 == 0 {
			s.endLost(ctx, now)
			s.forget(now)
			if err := s.shrink(ctx); err != nil && ctx.Err() == nil {
				s.opts.Log("the store cannot be kept in bounds: " + err.Error())
			}
		}
	}
}

// Load reads the sessions that were seen at most so long ago.
func (s *Server) Load(ctx context.Context, within time.Duration) {
	ids, err := s.store.sessions.Subjects(ctx)
	if err != nil {
		s.opts.Log("what is stored cannot be listed: " + err.Error())
	}
	for _, id := range ids {
		one, err := s.session(ctx, id)
		if err != nil {
			if ctx.Err() == nil {
				s.opts.Log(fmt.Sprintf("the session %s cannot be read: %v", id, err))
			}
			continue
		}
		s.mu.Lock()
		if s.opts.Now().Sub(one.seen) > within {
			delete(s.sessions, id)
			s.engine.forget(id)
		}
		s.mu.Unlock()
	}
}

func (s *Server) shrink(ctx context.Context) error {
	cut, err := s.store.shrink(ctx, s.opts.MaxDisk, s.letGo)
	if cut {
		s.mu.Lock()
		s.counts.shrunk = true
		s.mu.Unlock()
	}
	return err
}

// letGo drops a session from memory, unless it lives: its store may be cleared then.
func (s *Server) letGo(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.sessions[id]
	if one != nil && !one.hello.Ended && s.opts.Now().Sub(one.seen) < recent {
		return false
	}
	delete(s.sessions, id)
	s.engine.forget(id)
	return true
}

// forget drops sessions that have sent nothing for long.
func (s *Server) forget(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	drop := func(id string) {
		delete(s.sessions, id)
		s.engine.forget(id)
	}
	for id, one := range s.sessions {
		if now.Sub(one.seen) > forgetAfter {
			drop(id)
		}
	}
	if many := len(s.sessions) - mostSessions; many > 0 {
		bySeen := func(a, b string) int { return s.sessions[a].seen.Compare(s.sessions[b].seen) }
		for _, id := range slices.SortedFunc(maps.Keys(s.sessions), bySeen)[:many] {
			drop(id)
		}
	}
	maps.DeleteFunc(s.acted, func(_ string, at time.Time) bool { return now.Sub(at) > actionGap })
}

// hello notes a session, and returns the last seq that is stored of it.
func (s *Server) hello(ctx context.Context, h Hello) (int64, error) {
	if err := h.check(); err != nil {
		return 0, err
	}
	h.Source = "" // nobody else says what it is
	return s.greet(ctx, h)
}

// greet stores a hello.
func (s *Server) greet(ctx context.Context, h Hello) (int64, error) {
	h.TimeUS, h.Ended = s.opts.Now().UnixMicro(), false
	if before, err := s.store.hello(ctx, h.Session); err == nil { // said again
		h.TimeUS = before.TimeUS
	}
	if err := put(ctx, s.store.sessions, h.Session, h); err != nil {
		return 0, unavailable{err}
	}
	one, err := s.session(ctx, h.Session)
	if err != nil {
		return 0, unavailable{err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one.hello, one.seen = h, s.opts.Now()
	s.askAgain(one)
	return one.stored, nil
}

// unavailable says that the store does not answer: the job should send again.
type unavailable struct{ error }

func (u unavailable) Unwrap() error { return u.error }

// add stores samples, then answers.
func (s *Server) add(ctx context.Context, body samples) (reply, error) {
	one, err := s.session(ctx, body.Session)
	if err != nil {
		if errors.Is(err, errUnknown) {
			return reply{}, err
		}
		return reply{}, unavailable{err}
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	rows, top := s.fresh(one, body)
	if len(rows) > 0 {
		if err := s.keep(ctx, one, rows); err != nil {
			return reply{}, unavailable{err}
		}
	}
	now := s.opts.Now()
	var changes []change
	s.mu.Lock()
	s.askAgain(one)
	for _, r := range rows {
		changes = append(changes, s.take(one, r, now)...)
	}
	one.stored = max(one.stored, top)
	one.lost = max(one.lost, body.Lost)
	var over []*Alarm
	if body.End {
		one.hello.Ended = true
		s.engine.forget(body.Session)
		over = s.clearAll(body.Session, one.hello.Run, now)
	}
	over = append(over, s.giveUp(one, now)...)
	answer := reply{Stored: one.stored, Ask: append([]ask{}, one.asks...)}
	hello := one.hello
	s.mu.Unlock()
	for _, a := range over {
		s.saveAlarm(ctx, a)
	}
	if body.End {
		if err := put(ctx, s.store.sessions, hello.Session, hello); err != nil {
			return reply{}, unavailable{err}
		}
	}
	if s.opts.Sampled != nil {
		for _, r := range rows {
			s.opts.Sampled(newSample(&hello, r))
		}
	}
	s.act(ctx, changes)
	return answer, nil
}

// maxJump is how far the clock of a job may be from ours; a ring that was not
// sent for some minutes is older than now, too.
const maxJump = time.Hour

// fresh returns the rows that are not stored yet, in order, and the last seq that
// was sent, also of those that were refused.
func (s *Server) fresh(one *session, body samples) (rows []Row, top int64) {
	now := s.opts.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, from := range body.Samples {
		r, later, err := row(from)
		if later {
			s.counts.later++
		}
		if err != nil {
			s.counts.refused++
			continue
		}
		if r.V[Seq] <= one.tail.through {
			continue
		}
		if d := r.time().Sub(now); d > maxJump || d < -maxJump {
			r.V[Time] = now.UnixMicro()
			s.counts.jumps++
		}
		rows = append(rows, r)
	}
	slices.SortStableFunc(rows, func(a, b Row) int { return int(a.V[Seq] - b.V[Seq]) })
	rows = slices.CompactFunc(rows, func(a, b Row) bool { return a.V[Seq] == b.V[Seq] && a.GPU == b.GPU })
	for _, from := range body.Samples {
		if p := from["seq"]; p != nil && *p >= 1 && *p <= maxNumber {
			top = max(top, int64(*p))
		}
	}
	return rows, top
}

// keep stores rows in the journal, and makes a block of it if it is full. Only
// the first is needed to acknowledge them.
func (s *Server) keep(ctx context.Context, one *session, rows []Row) error {
	id := one.id
	err := s.store.append(ctx, id, &one.tail, rows)
	if errors.Is(err, hub.ErrMoved) { // an answer was lost, or another process took it
		if one.tail, err = s.store.readTail(ctx, id); err != nil {
			return err
		}
		rows = slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return r.V[Seq] <= one.tail.through })
		if len(rows) > 0 {
			err = s.store.append(ctx, id, &one.tail, rows)
		}
	}
	if err != nil || !one.tail.full() {
		return err
	}
	if err := s.tidy(ctx, one, rows[len(rows)-1].V[Time]); err != nil {
		s.opts.Log(fmt.Sprintf("the journal of %s stays as it is for now: %v", id, err))
	}
	return nil
}

// tidy makes blocks, and removes what is older than is kept.
func (s *Server) tidy(ctx context.Context, one *session, at int64) error {
	id := one.id
	if err := s.store.pack(ctx, id, &one.tail); err != nil {
		return err
	}
	for to := 1; to < len(levels); to++ {
		if at < one.again[to] {
			continue
		}
		again, err := s.store.roll(ctx, id, to)
		if err == nil {
			err = s.store.expire(ctx, id, to-1, s.opts.Now())
		}
		if err != nil {
			return err
		}
		one.again[to] = again
	}
	return nil
}

// Snapshot opens a snapshot that an alarm names.
func (s *Server) Snapshot(ctx context.Context, name string) (io.Reader, error) {
	return s.store.snapshots.Get(ctx, name)
}

// History calls f with the rows of all sessions of a run, session by session: the
// last values of each, and the smallest and largest of those that vary.
func (s *Server) History(ctx context.Context, run string, f func(h *Hello, last, low, high Row) error) error {
	ids, err := s.store.sessions.Subjects(ctx)
	if err != nil {
		return err
	}
	var names []string
	found := false
	for _, id := range ids {
		h, err := s.store.hello(ctx, id)
		if err != nil {
			return err
		}
		if !slices.Contains(names, h.Run) {
			names = append(names, h.Run)
		}
		if h.Run != run {
			continue
		}
		found = true
		spans, err := s.store.history(ctx, id)
		if err != nil {
			return err
		}
		for i := range spans {
			low, high := spans[i].Row, spans[i].Row
			for g, c := range Gauges {
				low.V[c], high.V[c] = spans[i].low[g], spans[i].high[g]
			}
			if err := f(&h, spans[i].Row, low, high); err != nil {
				return err
			}
		}
	}
	if !found {
		if len(names) == 0 {
			return fmt.Errorf("nothing is stored yet: call ashlar.watch() in a job")
		}
		return fmt.Errorf("there is no run %q: there are %s", run, strings.Join(names, ", "))
	}
	return nil
}

func decodeHello(body []byte) (h Hello, err error) {
	if err := json.Unmarshal(body, &h); err != nil {
		return h, fmt.Errorf("the body is not what docs/watch.md describes: %w", err)
	}
	if h.V < 1 {
		return h, fmt.Errorf("v is missing: this server knows version %d", Version)
	}
	return h, nil
}
