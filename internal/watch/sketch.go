package watch

import (
	"context"
	"slices"
	"sync"
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

// fillSketches reads what came before this process began, once for each session.
func (s *Server) fillSketches(ctx context.Context, now time.Time) error {
	s.mu.Lock()
	var missing []*session
	for _, one := range s.sessions {
		if !one.sketched {
			missing = append(missing, one)
		}
	}
	s.mu.Unlock()
	var work sync.WaitGroup
	var mu sync.Mutex
	var failed error
	for part := range slices.Chunk(missing, max(1, (len(missing)+readers-1)/readers)) {
		work.Go(func() {
			for _, one := range part {
				if err := s.fillSketch(ctx, one, now); err != nil {
					mu.Lock()
					failed = err
					mu.Unlock()
					return
				}
			}
		})
	}
	work.Wait()
	return failed
}

// readers is how many sessions are read at a time: each waits for the store.
const readers = 8

func (s *Server) fillSketch(ctx context.Context, one *session, now time.Time) error {
	s.mu.Lock()
	var gpus []int
	for gpu := range one.last {
		gpus = append(gpus, gpu)
	}
	s.mu.Unlock()
	from := now.Add(-SketchPieces * SketchPiece)
	for _, gpu := range gpus {
		var curves [2]Curve
		for i, number := range []int{Allocated, Reserved} {
			k := drawing{Curve: &curves[i], gpu: gpu, begin: from.UnixMicro(), end: now.UnixMicro() + 1, width: SketchPiece.Microseconds(), last: -1}
			if err := s.draw(ctx, one.id, number, &k); err != nil {
				return unavailable{err}
			}
		}
		s.mu.Lock()
		k := one.sketchOf(gpu)
		for i, at := range curves[0].Time {
			k.add(at, curves[0].High[i], unknown)
		}
		for i, at := range curves[1].Time {
			k.add(at, unknown, curves[1].High[i])
		}
		s.mu.Unlock()
	}
	s.mu.Lock()
	one.sketched = true
	s.mu.Unlock()
	return nil
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
