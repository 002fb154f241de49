package watch

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hub"
)

// session is a job that sends.
type session struct {
	id    string
	mu    sync.Mutex // held while its rows are stored
	tail  tail
	again [len(levels)]int64 // when a level may have a new block

	// Under the server's lock.
	hello  Hello
	stored int64
	last   map[int]Row
	slope  map[int]*watched // for the growth per step
	seen   time.Time
	lost   int64
	asks   []ask
	mine   bool // the job sends to this server, and not to one that forwards it
	sketch map[int]*sketch
	// sketched reports whether the sketches have what came before this process.
	sketched bool
}

var errUnknown = errors.New("the session has not said hello")

// session returns a session, which is read from the store if it must be.
func (s *Server) session(ctx context.Context, id string) (*session, error) {
	for {
		s.mu.Lock()
		if one := s.sessions[id]; one != nil {
			s.mu.Unlock()
			return one, nil
		}
		other := s.loading[id]
		if other == nil {
			break
		}
		s.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	done := make(chan struct{})
	s.loading[id] = done
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.loading, id)
		close(done)
	}()
	return s.read(ctx, id)
}

// read reads a session from the store.
func (s *Server) read(ctx context.Context, id string) (*session, error) {
	hello, err := s.store.hello(ctx, id)
	if errors.Is(err, hub.ErrNone) {
		return nil, errUnknown
	}
	if err != nil {
		return nil, err
	}
	one := &session{id: id, hello: hello, last: map[int]Row{}, slope: map[int]*watched{}, sketch: map[int]*sketch{}, seen: time.UnixMicro(hello.TimeUS)}
	if one.tail, err = s.store.readTail(ctx, id); err != nil {
		return nil, err
	}
	rows := one.tail.rows
	if len(rows) == 0 {
		rows = s.lastRows(ctx, id)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one.stored = one.tail.through
	// Without blocks there is nothing to read; from a cluster it would take long.
	one.sketched = one.tail.fine.through == 0 || !s.store.hub.Local()
	s.replay(one, rows)
	s.sessions[id] = one
	return one, nil
}

// lastRows returns those of the last block.
func (s *Server) lastRows(ctx context.Context, id string) (rows []Row) {
	m, err := s.store.levels[0].Last(ctx, id)
	if err != nil {
		return nil
	}
	_, spans, err := decode(m.Data)
	if err != nil {
		return nil
	}
	for i := range spans {
		rows = append(rows, spans[i].Row)
	}
	return rows
}

// replay lets rows count that were stored before this process read the session, and
// alarms with them. The server is locked.
func (s *Server) replay(one *session, rows []Row) {
	id, live := one.hello.Session, !one.hello.Ended
	for _, a := range s.alarms {
		if !live || a.Session != id {
			continue
		}
		at := a.RaisedUS
		if a.ClearedUS != nil {
			at = *a.ClearedUS
		}
		s.engine.restore(who{id, a.GPU}, a.Run, a.Name, a.ClearedUS == nil, time.UnixMicro(at))
	}
	for _, r := range rows {
		one.show(r, r.time())
		if live {
			s.engine.replay(who{id, r.GPU}, one.hello.Run, r, s.opts.Now())
		}
	}
}

// take lets a row count: for the state, and for alarms, whose changes it returns.
// The server is locked.
func (s *Server) take(one *session, r Row, now time.Time) []change {
	one.show(r, now)
	if one.hello.Ended {
		return nil
	}
	return s.engine.sample(who{one.hello.Session, r.GPU}, one.hello.Run, r, now)
}

// show lets a row count for the state. The server is locked.
func (one *session) show(r Row, now time.Time) {
	one.last[r.GPU], one.seen = r, now
	one.sketchOf(r.GPU).add(r.V[Time], r.V[Allocated], r.V[Reserved])
	g := one.slope[r.GPU]
	if g == nil {
		g = &watched{memory: map[expr]*history{}}
		one.slope[r.GPU] = g
	}
	g.row = r
	growth.eval(&moment{row: &g.row, fresh: true, memory: g.memory})
}

// growth is shown for every job.
var growth = &slope{column(Allocated)}
