package host

import (
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// FaultError is work that touched memory which was not mapped any more.
type FaultError struct {
	Stream uint64
	Addr   uint64
	Doing  string
}

func (e *FaultError) Error() string {
	return fmt.Sprintf("host: %s on stream %d touched %#x, where no memory is mapped (any more)", e.Doing, e.Stream, e.Addr)
}

// stream is a queue of work and the goroutine that does it.
type stream struct {
	id uint64

	mu       sync.Mutex
	changed  *sync.Cond // the queue, done, or ending
	queue    []work
	added    uint64 // number of pieces of work ever queued
	done     uint64 // and done
	ending   bool   // no more work is taken
	ended    bool   // the goroutine looks at the queue no more
	awaited  bool   // CloseStream reports the error
	err      error  // the first one since Synchronize asked
	perPiece time.Duration
	perMiB   time.Duration
}

// work is one piece of it.
type work struct {
	doing string
	run   func() error
	moves bool   // bytes, so that a slow stream takes its time
	bytes uint64 // how many
}

// startStream makes the next stream. The device is locked, or nobody else has it.
func (d *Device) startStream() *stream {
	s := &stream{id: d.nextStream}
	s.changed = sync.NewCond(&s.mu)
	d.nextStream++
	d.streams[s.id] = s
	d.workers.Go(func() {
		s.serve()
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.streams, s.id)
		if err := s.leftError(); err != nil {
			d.unseen = append(d.unseen, err)
		}
	})
	return s
}

// serve does the work of a stream until it ends.
func (s *stream) serve() {
	debug.SetPanicOnFault(true) // see attempt
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		for len(s.queue) == 0 {
			if s.ending {
				s.ended = true
				return
			}
			s.changed.Wait()
		}
		w := s.queue[0]
		s.queue[0] = work{} // its memory may go
		s.queue = s.queue[1:]
		pause := time.Duration(0)
		if w.moves {
			pause = s.perPiece + time.Duration(float64(s.perMiB)*float64(w.bytes)/(1<<20))
		}
		s.mu.Unlock()
		if pause > 0 {
			time.Sleep(pause)
		}
		err := s.attempt(&w)
		s.mu.Lock()
		if s.err == nil {
			s.err = err
		}
		s.done++
		s.changed.Broadcast()
	}
}

// attempt does one piece of work and turns a fault into an error.
func (s *stream) attempt(w *work) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case interface{ Addr() uintptr }: // the runtime's error for a fault
			err = &FaultError{Stream: s.id, Addr: uint64(r.Addr()), Doing: w.doing}
		default:
			panic(r)
		}
	}()
	return w.run()
}

// add queues work. It reports false if the stream has ended.
func (s *stream) add(w work) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	s.queue = append(s.queue, w)
	s.added++
	s.changed.Broadcast()
	return true
}

// queued returns a function that waits until the work queued by now is done.
func (s *stream) queued() func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.added
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for s.done < last {
			s.changed.Wait()
		}
	}
}

// end lets the goroutine end after the work that is queued. If the end is
// awaited, whoever waits takes the error.
func (s *stream) end(awaited bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ending = true
	s.awaited = s.awaited || awaited
	s.changed.Broadcast()
}

// leftError is the error of a stream that has ended, if nobody else will ask.
func (s *stream) leftError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.awaited {
		return nil
	}
	return s.err
}

func (s *stream) takeError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.err
	s.err = nil
	return err
}

// openStream finds a stream that takes work. The device is locked.
func (d *Device) openStream(id uint64) (*stream, error) {
	s := d.streams[id]
	if s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.ending {
			return s, nil
		}
	}
	return nil, d.noStream(id)
}

func (d *Device) noStream(id uint64) error {
	if id < d.nextStream {
		return misuse("stream %d is closed", id)
	}
	return misuse("there is no stream %d", id)
}

// queueMark queues work that only marks how far a stream has come; it is allowed
// while the stream ends and after that. It reports false if the stream has ended. The device is locked.
func (d *Device) queueMark(id uint64, w work) (queued bool, err error) {
	if id >= d.nextStream {
		return false, d.noStream(id)
	}
	s := d.streams[id]
	return s != nil && s.add(w), nil
}

// waiterFor returns a function that waits for the work queued on a stream so far; a
// closed stream has none. The device is locked.
func (d *Device) waiterFor(id uint64) (func(), error) {
	if id >= d.nextStream {
		return nil, d.noStream(id)
	}
	if s := d.streams[id]; s != nil {
		return s.queued(), nil
	}
	return func() {}, nil
}

// queuedWork returns for each stream what queued does.
func (d *Device) queuedWork() []func() {
	waits := make([]func(), 0, len(d.streams))
	for _, s := range d.streams {
		waits = append(waits, s.queued())
	}
	return waits
}

// NewStream makes a stream.
func (d *Device) NewStream() (uint64, error) {
	if err := d.begin(); err != nil {
		return 0, err
	}
	defer d.mu.Unlock()
	return d.startStream().id, nil
}

// CloseStream takes no more work for a stream, waits for what is queued and
// reports the first error in it since the last Synchronize.
func (d *Device) CloseStream(stream uint64) error {
	if err := d.begin(); err != nil {
		return err
	}
	if stream == 0 {
		d.mu.Unlock()
		return misuse("stream 0 cannot be closed")
	}
	s, err := d.openStream(stream)
	if err != nil {
		d.mu.Unlock()
		return err
	}
	s.end(true)
	wait := s.queued()
	d.mu.Unlock()
	wait()
	return s.takeError()
}

// Synchronize waits for the work queued on a stream and reports the first
// error in it since the last Synchronize. Of a closed stream CloseStream has
// reported it.
func (d *Device) Synchronize(stream uint64) error {
	if err := d.begin(); err != nil {
		return err
	}
	s, err := d.openStream(stream)
	if err != nil {
		wait, err := d.waiterFor(stream)
		d.mu.Unlock()
		if err == nil {
			wait()
		}
		return err
	}
	wait := s.queued()
	d.mu.Unlock()
	wait()
	return s.takeError()
}

// Slow makes every copy and fill of a stream take a while from now on, for each
// piece of work and for each MiB in it. The bytes move when the time is over.
func (d *Device) Slow(stream uint64, perPiece, perMiB time.Duration) error {
	if err := d.begin(); err != nil {
		return err
	}
	defer d.mu.Unlock()
	s, err := d.openStream(stream)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.perPiece, s.perMiB = max(0, perPiece), max(0, perMiB)
	return nil
}

// Launch queues a function on a stream, as a kernel is on a GPU. It must not
// call the device. Its error is what Synchronize reports.
func (d *Device) Launch(stream uint64, f func() error) error {
	return d.enqueue(stream, work{doing: "a function", run: f})
}

func (d *Device) enqueue(stream uint64, w work) error {
	if err := d.begin(); err != nil {
		return err
	}
	defer d.mu.Unlock()
	return d.add(stream, w)
}

// add queues work. The device is locked.
func (d *Device) add(stream uint64, w work) error {
	s, err := d.openStream(stream)
	if err == nil && !s.add(w) {
		err = d.noStream(stream)
	}
	return err
}
