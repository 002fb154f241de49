package save_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/host"
	"github.com/ashlar-mem/ashlar/driver/save"
)

// watched is a device that notes what is done to the program's streams by
// anybody but the program.
type watched struct {
	*host.Device
	own uint64 // streams from here on are the saver's

	mu     sync.Mutex
	events map[driver.Event]uint64 // and their streams
	notes  []string
}

func (w *watched) note(stream uint64, doing string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if stream < w.own {
		w.notes = append(w.notes, fmt.Sprintf("%s stream %d", doing, stream))
	}
}

func (w *watched) RecordEvent(stream, addr uint64) (driver.Event, error) {
	ev, err := w.Device.RecordEvent(stream, addr)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events[ev] = stream
	return ev, err
}

func (w *watched) forget(ev driver.Event) (stream uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	stream = w.events[ev]
	delete(w.events, ev)
	return stream
}

func (w *watched) WaitEvent(ev driver.Event) error {
	w.note(w.forget(ev), "waiting for")
	return w.Device.WaitEvent(ev)
}

func (w *watched) EventDone(ev driver.Event) (bool, error) {
	done, err := w.Device.EventDone(ev)
	if done {
		w.forget(ev)
	}
	return done, err
}

func (w *watched) Synchronize(stream uint64) error {
	w.note(stream, "synchronizing")
	return w.Device.Synchronize(stream)
}

func (w *watched) StreamWait(stream uint64, ev driver.Event) error {
	w.note(stream, "holding up")
	return w.Device.StreamWait(stream, ev)
}

// Memory may change again before the disk has it, the program's stream is
// neither waited for nor held up, and no event is left.
func TestFlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 4 * mib
		d := &watched{Device: host.New(host.Config{}), own: 2, events: map[driver.Event]uint64{}}
		defer func() { check(t, d.Close()) }()
		compute := must[uint64](t)(d.NewStream())
		addr := must[uint64](t)(d.Malloc(size, compute))
		s := must[*save.Saver](t)(save.New(d, save.Options{Chunk: mib, Buffers: 4}))
		defer func() { check(t, s.Close()) }()
		check(t, d.Slow(compute, time.Second, 0))
		check(t, d.Slow(compute+1, time.Second, 0))

		path := filepath.Join(t.TempDir(), "out")
		check(t, d.Fill(addr, 9, size, compute))
		p := must[*save.Pending](t)(s.Save(t.Context(), path, []save.Item{{Name: "x", Addr: addr, Size: size}}, compute))
		second := must[*save.Pending](t)(s.Save(t.Context(), path+"2", []save.Item{{Name: "x", Addr: addr, Size: size}}, compute))
		for i := range 5 {
			select {
			case <-p.Copied():
				t.Errorf("copied after %d seconds", i)
			default:
			}
			time.Sleep(time.Second)
			synctest.Wait()
		}
		select {
		case <-p.Copied():
		default:
			t.Error("not copied 1 second for the work and 4 for the copies later")
		}
		check(t, p.Wait())
		check(t, second.Wait())
		if len(d.notes) > 0 || len(d.events) > 0 {
			t.Errorf("notes %q, events left %v", d.notes, d.events)
		}
		if !bytes.Equal(read(t, path)["x"], read(t, path+"2")["x"]) {
			t.Error("two saves of the same memory differ")
		}
	})
}
