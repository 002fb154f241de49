package save

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ashlar-mem/ashlar/driver"
)

// ErrClosed is the error of saves that Close ended, and of those begun after it.
var ErrClosed = errors.New("the saver is closed")

// Options say how a Saver works. The zero value will do.
type Options struct {
	Chunk   uint64 // bytes that are copied and written at a time; 0 is 16 MiB
	Buffers int    // of that size; 0 is 4
}

// Saver saves memory of one device, one file after the other. It is safe for
// concurrent use.
type Saver struct {
	dev    driver.Copier
	stream uint64
	disk   disk
	free   chan []byte // the ring: buffers that nobody uses

	mu      sync.Mutex
	queue   []*job
	working bool
	closed  bool
	broken  error // why the buffers cannot be trusted any more
	worker  sync.WaitGroup
	ctx     context.Context // of all saves
	cancel  context.CancelCauseFunc
}

// New makes a saver with its stream and its buffers.
func New(dev driver.Copier, o Options) (*Saver, error) {
	if o.Chunk == 0 {
		o.Chunk = 16 << 20
	}
	if o.Buffers == 0 {
		o.Buffers = 4
	}
	if o.Buffers < 0 {
		return nil, fmt.Errorf("save: %d buffers", o.Buffers)
	}
	s := &Saver{dev: dev, disk: realDisk{}, free: make(chan []byte, o.Buffers)}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	var err error
	if s.stream, err = dev.NewStream(); err != nil {
		return nil, fmt.Errorf("save: making a stream: %w", err)
	}
	for range o.Buffers {
		buf, err := dev.AllocHost(o.Chunk)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("save: getting %d buffers of %d bytes: %w", o.Buffers, o.Chunk, err), s.giveBack(len(s.free)))
		}
		s.free <- buf
	}
	return s, nil
}

// Save begins to save items to a file and returns at once. What is saved is the
// memory as it is after the work queued on stream by now; what happens to it
// afterwards is the caller's care, see [Pending]. The context ends the save
// early.
//
// A stream that is being captured into a graph has no state to save: the error
// is [driver.ErrCapturing] then, and the capture goes on.
func (s *Saver) Save(ctx context.Context, path string, items []Item, stream uint64) (*Pending, error) {
	if path == "" {
		return nil, errors.New("save: there is no path")
	}
	header, pieces, err := layout(items)
	if err != nil {
		return nil, fmt.Errorf("save: %s: %w", path, err)
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("save: %s: %w", path, context.Cause(ctx))
	}
	j := &job{saver: s, path: path, header: header, pieces: pieces, pending: newPending(s.dev)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refuses(stream); err != nil {
		return nil, fmt.Errorf("save: %s: %w", path, err)
	}
	if j.begin, err = s.dev.RecordEvent(stream, 0); err != nil {
		return nil, fmt.Errorf("save: %s: marking stream %#x: %w", path, stream, err)
	}
	j.ctx, j.cancel = context.WithCancelCause(ctx)
	j.stop = context.AfterFunc(s.ctx, func() { j.cancel(context.Cause(s.ctx)) })
	s.queue = append(s.queue, j)
	if !s.working {
		s.working = true
		s.worker.Go(s.work)
	}
	return j.pending, nil
}

// refuses says why no save can begin. The saver is locked.
func (s *Saver) refuses(stream uint64) error {
	switch {
	case s.closed:
		return ErrClosed
	case s.broken != nil:
		return s.broken
	}
	return refuseCapturing(s.dev, stream)
}

// refuseCapturing refuses a stream that is being captured: an event recorded there
// would pull whoever waits for it into the graph, and a wait would break it.
func refuseCapturing(dev driver.Copier, stream uint64) error {
	c, ok := dev.(driver.Capturer)
	if !ok {
		return nil
	}
	yes, err := c.Capturing(stream)
	if err != nil {
		return fmt.Errorf("asking whether stream %#x is being captured: %w", stream, err)
	}
	if yes {
		return fmt.Errorf("stream %#x: %w; end the capture first", stream, driver.ErrCapturing)
	}
	return nil
}

// work does one job after the other until none is left.
func (s *Saver) work() {
	for {
		s.mu.Lock()
		if len(s.queue) == 0 {
			s.working = false
			s.mu.Unlock()
			return
		}
		j := s.queue[0]
		s.queue = s.queue[1:]
		if s.broken != nil {
			j.cancel(s.broken)
		}
		s.mu.Unlock()
		j.run()
	}
}

// breakDown makes all saves after the one under way fail, those that wait for
// their turn included: a copy that nobody could wait for may still write into a
// buffer.
func (s *Saver) breakDown(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken == nil {
		s.broken = fmt.Errorf("an earlier save left copies that may still be running, make another saver: %w", err)
	}
}

// Close ends all saves with [ErrClosed] and gives stream and buffers back. It
// waits for copies that are queued. Those who want their files wait for the
// saves first. Closing again does nothing.
func (s *Saver) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	s.cancel(ErrClosed)
	s.worker.Wait()
	return s.giveBack(len(s.free))
}

// giveBack closes the stream and frees the buffers of the ring.
func (s *Saver) giveBack(buffers int) error {
	var failed []error
	if err := s.dev.CloseStream(s.stream); err != nil {
		failed = append(failed, fmt.Errorf("save: closing the stream: %w", err))
	}
	for range buffers {
		if err := s.dev.FreeHost(<-s.free); err != nil {
			failed = append(failed, fmt.Errorf("save: giving a buffer back: %w", err))
		}
	}
	return errors.Join(failed...)
}
