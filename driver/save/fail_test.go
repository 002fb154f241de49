package save

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/host"
)

// badDisk is the real one with a step that fails.
type badDisk struct {
	realDisk
	step  string
	err   error
	after int           // writes that work
	gate  chan struct{} // writes wait for it if it is not nil
}

func (d *badDisk) fails(step string) error {
	if step == d.step {
		return d.err
	}
	return nil
}

func (d *badDisk) create(path string, mode *fs.FileMode) (file, error) {
	if err := d.fails("create"); err != nil {
		return nil, err
	}
	f, err := d.realDisk.create(path, mode)
	return &badFile{f, d}, err
}

func (d *badDisk) rename(from, to string) error {
	if err := d.fails("rename"); err != nil {
		return err
	}
	return d.realDisk.rename(from, to)
}

func (d *badDisk) syncFolder(path string) error {
	if err := d.fails("folder"); err != nil {
		return err
	}
	return d.realDisk.syncFolder(path)
}

type badFile struct {
	file
	d *badDisk
}

func (f *badFile) Write(data []byte) (int, error) {
	if f.d.gate != nil {
		<-f.d.gate
	}
	if f.d.after--; f.d.after < 0 {
		if err := f.d.fails("write"); err != nil {
			n, _ := f.file.Write(data[:len(data)/2])
			if errors.Is(err, io.ErrShortWrite) {
				err = nil // it only writes less
			}
			return n, err
		}
	}
	return f.file.Write(data)
}

func (f *badFile) Sync() error {
	if err := f.d.fails("sync"); err != nil {
		return err
	}
	return f.file.Sync()
}

func (f *badFile) Close() error {
	err := f.file.Close()
	return errors.Join(f.d.fails("close"), err)
}

// badDevice fails a call. It counts the events that somebody may still name.
type badDevice struct {
	*host.Device
	mu     sync.Mutex
	call   string
	after  int // calls that work
	events map[driver.Event]bool
}

var errDevice = errors.New("the device fails")

func (d *badDevice) fails(call string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if call == d.call {
		if d.after--; d.after < 0 {
			return errDevice
		}
	}
	return nil
}

func (d *badDevice) CopyToHost(dst []byte, src, stream uint64) error {
	if err := d.fails("copy"); err != nil {
		return err
	}
	return d.Device.CopyToHost(dst, src, stream)
}

func (d *badDevice) StreamWait(stream uint64, ev driver.Event) error {
	if err := d.fails("stream wait"); err != nil {
		return err
	}
	return d.Device.StreamWait(stream, ev)
}

func (d *badDevice) Synchronize(stream uint64) error {
	return errors.Join(d.Device.Synchronize(stream), d.fails("synchronize"))
}

func (d *badDevice) RecordEvent(stream, addr uint64) (driver.Event, error) {
	if err := d.fails("record"); err != nil {
		return 0, err
	}
	ev, err := d.Device.RecordEvent(stream, addr)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events[ev] = true
	return ev, err
}

func (d *badDevice) WaitEvent(ev driver.Event) error {
	err := d.Device.WaitEvent(ev)
	d.mu.Lock()
	delete(d.events, ev)
	d.mu.Unlock()
	return errors.Join(err, d.fails("wait"))
}

func (d *badDevice) EventDone(ev driver.Event) (bool, error) {
	done, err := d.Device.EventDone(ev)
	d.mu.Lock()
	defer d.mu.Unlock()
	if done {
		delete(d.events, ev)
	}
	return done, err
}

// Whatever fails is reported, the file that was there stays, nothing is left
// behind, and the saver goes on if it can trust its buffers.
func TestFailures(t *testing.T) {
	const size = 10_000 // ten buffers
	for _, c := range []struct {
		name  string
		disk  badDisk
		call  string
		after int
		want  error
		// replaced: the new file is in place; broken: later saves fail.
		replaced, broken bool
	}{
		{name: "create", disk: badDisk{step: "create", err: syscall.EACCES}, want: syscall.EACCES},
		{name: "full at the header", disk: badDisk{step: "write", err: syscall.ENOSPC}, want: syscall.ENOSPC},
		{name: "full", disk: badDisk{step: "write", err: syscall.ENOSPC, after: 5}, want: syscall.ENOSPC},
		{name: "full at the last", disk: badDisk{step: "write", err: syscall.ENOSPC, after: 10}, want: syscall.ENOSPC},
		{name: "short write", disk: badDisk{step: "write", err: io.ErrShortWrite, after: 3}, want: io.ErrShortWrite},
		{name: "sync", disk: badDisk{step: "sync", err: syscall.EIO}, want: syscall.EIO},
		{name: "close", disk: badDisk{step: "close", err: syscall.EDQUOT}, want: syscall.EDQUOT},
		{name: "rename", disk: badDisk{step: "rename", err: syscall.EXDEV}, want: syscall.EXDEV},
		{name: "folder", disk: badDisk{step: "folder", err: syscall.EIO}, want: syscall.EIO, replaced: true},
		{name: "stream wait", call: "stream wait", want: errDevice},
		{name: "first copy", call: "copy", want: errDevice},
		{name: "sixth copy", call: "copy", after: 5, want: errDevice},
		{name: "first mark", call: "record", after: 1, want: errDevice},
		{name: "sixth mark", call: "record", after: 6, want: errDevice},
		{name: "wait", call: "wait", after: 3, want: errDevice, broken: true},
		{name: "error in the copies", call: "synchronize", want: errDevice},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &badDevice{Device: host.New(host.Config{}), call: c.call, after: c.after, events: map[driver.Event]bool{}}
			defer d.Device.Close()
			addr, err := d.Malloc(size, 0)
			check(t, err)
			check(t, d.Fill(addr, 1, size, 0))
			s, err := New(d, Options{Chunk: 1000, Buffers: 3})
			check(t, err)
			defer s.Close()
			s.disk = &c.disk
			path := filepath.Join(t.TempDir(), "out")
			check(t, os.WriteFile(path, []byte("before"), 0o666))
			items := []Item{{Name: "x", Addr: addr, Size: size}}

			p, err := s.Save(t.Context(), path, items, 0)
			check(t, err)
			<-p.Copied()
			if err := p.Wait(); !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			} else {
				t.Log(err)
			}
			check(t, p.Fence(0))
			old, err := os.ReadFile(path)
			check(t, err)
			if (string(old) != "before") != c.replaced {
				t.Errorf("the file holds %.20q", old)
			}
			files, err := os.ReadDir(filepath.Dir(path))
			check(t, err)
			if len(files) != 1 {
				t.Errorf("files %v", files)
			}
			if len(s.free) != 3 {
				t.Errorf("%d of 3 buffers came back", len(s.free))
			}
			// With a stream that cannot wait the mark cannot be known to be done.
			if len(d.events) > 0 && c.call != "stream wait" {
				t.Errorf("events left: %v", d.events)
			}

			s.disk, d.call = realDisk{}, ""
			p, err = s.Save(t.Context(), path, items, 0)
			if c.broken {
				if !errors.Is(err, errDevice) {
					t.Errorf("a saver that cannot trust its buffers: %v", err)
				}
				return
			}
			check(t, err)
			if err := p.Wait(); err != nil {
				t.Errorf("the save after it: %v", err)
			}
		})
	}
}

// A save that is cancelled while the disk hangs ends when it can.
func TestCancel(t *testing.T) {
	const size = 10_000
	d := host.New(host.Config{})
	defer d.Close()
	addr, err := d.Malloc(size, 0)
	check(t, err)
	s, err := New(d, Options{Chunk: 1000, Buffers: 3})
	check(t, err)
	defer s.Close()
	slow := &badDisk{gate: make(chan struct{})}
	s.disk = slow
	path := filepath.Join(t.TempDir(), "out")
	ctx, cancel := context.WithCancelCause(t.Context())
	p, err := s.Save(ctx, path, []Item{{Name: "x", Addr: addr, Size: size}}, 0)
	check(t, err)
	behind, err := s.Save(ctx, path, []Item{{Name: "x", Addr: addr, Size: size}}, 0)
	check(t, err)
	enough := errors.New("enough")
	cancel(enough)
	<-p.Copied() // the disk still hangs, but memory is read no more
	close(slow.gate)
	for _, p := range []*Pending{p, behind} {
		if err := p.Wait(); !errors.Is(err, enough) {
			t.Errorf("error %v", err)
		}
	}
	if files, err := os.ReadDir(filepath.Dir(path)); err != nil || len(files) > 0 {
		t.Errorf("files %v, %v", files, err)
	}
	// What fits into the buffers is copied although the disk hangs.
	slow.gate = make(chan struct{})
	p, err = s.Save(t.Context(), path, []Item{{Name: "x", Addr: addr, Size: 3000}}, 0)
	check(t, err)
	check(t, p.Fence(0))
	<-p.Copied()
	select {
	case <-p.Done():
		t.Error("done with a disk that hangs")
	default:
	}
	close(slow.gate)
	check(t, p.Wait())
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
