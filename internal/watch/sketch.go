package watch

import (
	"context"
	"time"
)

// The last hours in small are so many pieces of time.
const (
	SketchPiece  = time.Minute
	SketchPieces = 120
)

// Sketch is the last hours of a GPU in small: the most that was allocated and
// reserved in each piece of time, the oldest first; -1 where nothing is known.
type Sketch struct {
	Session             string
	GPU                 int
	Allocated, Reserved [SketchPieces]int64
}

// sketch is that of a GPU while it goes on: a ring of pieces.
type sketch struct {
	piece               [SketchPieces]int64 // counted from 1970
	allocated, reserved [SketchPieces]int64
}

func (k *sketch) add(at, allocated, reserved int64) {
	piece := at / SketchPiece.Microseconds()
	i := piece % SketchPieces
	if k.piece[i] > piece {
		return // older than is kept
	}
	if k.piece[i] < piece {
		k.piece[i], k.allocated[i], k.reserved[i] = piece, unknown, unknown
	}
	k.allocated[i], k.reserved[i] = max(k.allocated[i], allocated), max(k.reserved[i], reserved)
}

// Sketches returns the last hours of all GPUs, up to the given time.
func (s *Server) Sketches(ctx context.Context, now time.Time) ([]Sketch, error) {
	if err := s.fillSketches(ctx, now); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	first := now.UnixMicro()/SketchPiece.Microseconds() - SketchPieces + 1
	var all []Sketch
	for _, one := range s.sessions {
		for gpu, k := range one.sketch {
			out := Sketch{Session: one.id, GPU: gpu}
			for n := range out.Allocated {
				out.Allocated[n], out.Reserved[n] = unknown, unknown
				if i := (first + int64(n)) % SketchPieces; k.piece[i] == first+int64(n) {
					out.Allocated[n], out.Reserved[n] = k.allocated[i], k.reserved[i]
				}
			}
			all = append(all, out)
		}
	}
	return all, nil
}

// fillSketches reads what came before this process began, once for each session:
// all sessions in one go through the store, which is a tenth of the work of
// looking for one after the other.
func (s *Server) fillSketches(ctx context.Context, now time.Time) error {
	s.sketching.Lock()
	defer s.sketching.Unlock()
	missing := map[string]*session{}
	s.mu.Lock()
	for id, one := range s.sessions {
		if !one.sketched {
			missing[id] = one
		}
	}
	s.mu.Unlock()
	if len(missing) == 0 {
		return nil
	}
	from := now.Add(-SketchPieces * SketchPiece).UnixMicro()
	err := s.store.indexAll(ctx, func(id string, h head, data []byte, covered int64) {
		if one := missing[id]; one != nil && h.end >= from && h.last > covered {
			s.fillSketch(one, data, covered)
		}
	})
	if err != nil {
		return unavailable{err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range missing {
		one.sketched = true
	}
	return nil
}

// fillSketch adds the rows of a block behind a seq.
func (s *Server) fillSketch(one *session, data []byte, after int64) {
	allocated, err := decodeNumber(data, Allocated)
	if err != nil {
		return // damaged: one block less
	}
	reserved, err := decodeNumber(data, Reserved)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := range allocated {
		a, r := &allocated[n], &reserved[n]
		k := one.sketchOf(a.gpu)
		for i, seq := range a.seq {
			if seq > after {
				k.add(a.time[i], a.high[i], r.high[i])
			}
		}
	}
}

// sketchOf returns the sketch of a GPU. The server is locked.
func (one *session) sketchOf(gpu int) *sketch {
	k := one.sketch[gpu]
	if k == nil {
		k = &sketch{}
		one.sketch[gpu] = k
	}
	return k
}
