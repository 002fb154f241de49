package save_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/host"
	"github.com/ashlar-mem/ashlar/driver/save"
	"github.com/ashlar-mem/ashlar/internal/safetensors"
)

const mib = 1 << 20

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func device(t *testing.T) *host.Device {
	d := host.New(host.Config{Memory: 256 * mib})
	t.Cleanup(func() { check(t, d.Close()) })
	return d
}

func saver(t *testing.T, d driver.Copier, o save.Options) *save.Saver {
	t.Helper()
	s := must[*save.Saver](t)(save.New(d, o))
	t.Cleanup(func() { check(t, s.Close()) })
	return s
}

// read returns the data of the tensors in a file, by name.
func read(t *testing.T, path string) map[string][]byte {
	t.Helper()
	tensors := must[[]safetensors.Tensor](t)(safetensors.Open(path))
	data := must[[]byte](t)(os.ReadFile(path))
	data = data[8+binary.LittleEndian.Uint64(data):]
	out := map[string][]byte{}
	for _, x := range tensors {
		out[x.Name], data = data[:x.Bytes], data[x.Bytes:]
	}
	return out
}

// leftovers are the temporary files in a folder.
func leftovers(t *testing.T, folder string) []string {
	t.Helper()
	return must[[]string](t)(filepath.Glob(filepath.Join(folder, ".*")))
}

// What is in the file is what was in memory, whatever the sizes of items and
// buffers.
func TestBytes(t *testing.T) {
	d := device(t)
	a := alloc.New(d)
	r := rand.New(rand.NewPCG(3, 4))
	var items []save.Item
	want := map[string][32]byte{}
	for i, size := range []uint64{1, 4096, 0, 3, 1 << 20, 70_000, 12, 999, 1001, 1000} {
		it := save.Item{Name: fmt.Sprint("tensor ", i), Size: size}
		if size%4 == 0 {
			it.DType, it.Shape = "F32", []int64{int64(size / 4)}
		}
		data := make([]byte, size)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		want[it.Name] = sha256.Sum256(data)
		it.Addr = must[uint64](t)(a.Malloc(size, 0))
		if size > 0 {
			check(t, d.CopyToDevice(it.Addr, data, 0))
		}
		items = append(items, it)
	}
	for _, o := range []save.Options{{}, {Chunk: 1000, Buffers: 3}, {Chunk: 7777, Buffers: 1}, {Chunk: 1}} {
		t.Run(fmt.Sprint(o), func(t *testing.T) {
			items := items
			if o.Chunk == 1 {
				items = items[:4]
			}
			s := saver(t, d, o)
			path := filepath.Join(t.TempDir(), "out.safetensors")
			check(t, must[*save.Pending](t)(s.Save(t.Context(), path, items, 0)).Wait())
			got := read(t, path)
			if len(got) != len(items) {
				t.Errorf("%d tensors of %d", len(got), len(items))
			}
			for _, it := range items {
				if sha256.Sum256(got[it.Name]) != want[it.Name] {
					t.Errorf("%s, %d bytes: other bytes are in the file", it.Name, it.Size)
				}
			}
			if left := leftovers(t, filepath.Dir(path)); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// deaf is a device whose streams do not wait for events.
type deaf struct{ driver.Copier }

func (deaf) StreamWait(uint64, driver.Event) error { return nil }

// A save holds what the work queued before it makes of memory, and nothing of
// the work queued after its fence. Without the event, and without the fence,
// it does not, which shows that this test can tell.
func TestOrder(t *testing.T) {
	for _, c := range []struct {
		name        string
		deaf, fence bool
		want        byte
	}{
		{"in order", false, true, 2},
		{"no event", true, true, 1},
		{"no fence", false, false, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const size = 4 * mib
				d := host.New(host.Config{})
				defer func() { check(t, d.Close()) }()
				compute := must[uint64](t)(d.NewStream())
				addr := must[uint64](t)(d.Malloc(size, compute))
				check(t, d.Fill(addr, 1, size, compute))
				check(t, d.Synchronize(compute))

				var dev driver.Copier = d
				if c.deaf {
					dev = deaf{d}
				}
				s := must[*save.Saver](t)(save.New(dev, save.Options{Chunk: mib, Buffers: 8}))
				defer func() { check(t, s.Close()) }()
				// The saver's stream is the one after compute. Copies take
				// longer than the work that comes after the save.
				check(t, d.Slow(compute, time.Second, 0))
				check(t, d.Slow(compute+1, 2*time.Second, 0))
				if c.deaf {
					check(t, d.Slow(compute+1, 0, 0))
				}

				path := filepath.Join(t.TempDir(), "out")
				start := time.Now()
				check(t, d.Fill(addr, 2, size, compute))
				p := must[*save.Pending](t)(s.Save(t.Context(), path, []save.Item{{Name: "x", Addr: addr, Size: size}}, compute))
				if c.fence {
					check(t, p.Fence(compute))
				}
				check(t, d.Fill(addr, 3, size, compute))
				if time.Since(start) != 0 {
					t.Errorf("the program waited for %v", time.Since(start))
				}
				check(t, p.Wait())
				if got := read(t, path)["x"]; !bytes.Equal(got, bytes.Repeat([]byte{c.want}, size)) {
					t.Errorf("the file holds %d ... %d, want %d", got[0], got[size-1], c.want)
				}
				check(t, d.Synchronize(compute))
				if last := must[[]byte](t)(d.Bytes(addr, size)); last[0] != 3 {
					t.Errorf("memory holds %d in the end", last[0])
				}
			})
		})
	}
}

func TestReplaces(t *testing.T) {
	d := device(t)
	s := saver(t, d, save.Options{Chunk: 1000})
	addr := must[uint64](t)(d.Malloc(5000, 0))
	path := filepath.Join(t.TempDir(), "out")
	plain := filepath.Join(t.TempDir(), "plain")
	check(t, os.WriteFile(plain, nil, 0o666))
	for v := range byte(3) {
		check(t, d.Fill(addr, v, 5000, 0))
		p := must[*save.Pending](t)(s.Save(t.Context(), path, []save.Item{{Name: "x", Addr: addr, Size: 5000}}, 0))
		check(t, p.Fence(0))
		check(t, p.Wait())
		if got := read(t, path)["x"]; !bytes.Equal(got, bytes.Repeat([]byte{v}, 5000)) {
			t.Errorf("save %d: the file holds %d", v, got[0])
		}
	}
	if got, want := must[fs.FileInfo](t)(os.Stat(path)).Mode(), must[fs.FileInfo](t)(os.Stat(plain)).Mode(); got != want {
		t.Errorf("mode %v, other files have %v", got, want)
	}
}

func TestRefused(t *testing.T) {
	d := device(t)
	s := saver(t, d, save.Options{})
	addr := must[uint64](t)(d.Malloc(5000, 0))
	ended, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	ok := []save.Item{{Name: "x", Addr: addr, Size: 5000}}
	for _, c := range []struct {
		want   string
		ctx    context.Context
		path   string
		items  []save.Item
		stream uint64
	}{
		{"no path", t.Context(), "", ok, 0},
		{"enough", ended, "out", ok, 0},
		{"two of that name", t.Context(), "out", append(ok, ok...), 0},
		{"has no address", t.Context(), "out", []save.Item{{Name: "x", Size: 1}}, 0},
		{"5000 bytes, but F32 [3] is 12", t.Context(), "out", []save.Item{{Name: "x", Addr: addr, Size: 5000, DType: "F32", Shape: []int64{3}}}, 0},
		{"no stream 99", t.Context(), "out", ok, 99},
	} {
		if p, err := s.Save(c.ctx, c.path, c.items, c.stream); err == nil || p != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
	if _, err := save.New(d, save.Options{Buffers: -1}); err == nil {
		t.Error("a negative number of buffers")
	}
	if _, err := save.New(d, save.Options{Chunk: 1 << 50}); !errors.Is(err, driver.ErrOutOfMemory) {
		t.Errorf("buffers of 2^50 bytes: %v", err)
	}
}

// A path that cannot be written is an error of the save, not of the program.
func TestPaths(t *testing.T) {
	d := device(t)
	s := saver(t, d, save.Options{})
	addr := must[uint64](t)(d.Malloc(5000, 0))
	folder := t.TempDir()
	for path, want := range map[string]error{
		filepath.Join(folder, "missing", "out"): fs.ErrNotExist,
		folder:                                  nil, // any: it is a folder
	} {
		p := must[*save.Pending](t)(s.Save(t.Context(), path, []save.Item{{Name: "x", Addr: addr, Size: 5000}}, 0))
		<-p.Copied()
		err := p.Wait()
		if err == nil || want != nil && !errors.Is(err, want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if left := leftovers(t, folder); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestClose(t *testing.T) {
	before := runtime.NumGoroutine()
	d := host.New(host.Config{})
	s := must[*save.Saver](t)(save.New(d, save.Options{Chunk: 1000, Buffers: 2}))
	addr := must[uint64](t)(d.Malloc(mib, 0))
	gate := make(chan struct{})
	check(t, d.Launch(0, func() error {
		<-gate
		return nil
	}))
	folder := t.TempDir()
	var all []*save.Pending
	for i := range 3 {
		all = append(all, must[*save.Pending](t)(s.Save(t.Context(), filepath.Join(folder, fmt.Sprint(i)), []save.Item{{Name: "x", Addr: addr, Size: mib}}, 0)))
	}
	go func() {
		time.Sleep(10 * time.Millisecond)
		close(gate)
	}()
	check(t, s.Close())
	check(t, s.Close())
	for _, p := range all {
		<-p.Copied()
		check(t, p.Fence(0))
		if err := p.Wait(); !errors.Is(err, save.ErrClosed) || strings.Count(err.Error(), "save: ") != 1 {
			t.Errorf("error %v", err)
		}
	}
	parent := &parent{Context: t.Context()}
	if _, err := s.Save(parent, "out", nil, 0); !errors.Is(err, save.ErrClosed) || strings.Count(err.Error(), "save: ") != 1 {
		t.Errorf("save after Close: %v", err)
	}
	if parent.children != 0 {
		t.Error("a save that was refused left its context behind")
	}
	if files := must[[]os.DirEntry](t)(os.ReadDir(folder)); len(files) > 0 {
		t.Errorf("files left: %v", files)
	}
	check(t, d.Close())
	for i := 0; runtime.NumGoroutine() > before && i < 1000; i++ {
		time.Sleep(time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines are left", n-before)
	}
}

// parent counts the contexts that depend on it.
type parent struct {
	context.Context
	children int
}

func (p *parent) AfterFunc(f func()) func() bool {
	p.children++
	stop := context.AfterFunc(p.Context, f)
	return func() bool {
		p.children--
		return stop()
	}
}

// TestReplace: what has the name of the file already keeps what is its own.
func TestReplace(t *testing.T) {
	d := device(t)
	s := saver(t, d, save.Options{Chunk: 1000})
	addr := must[uint64](t)(d.Malloc(mib, 0))
	write := func(path string) error {
		p, err := s.Save(t.Context(), path, []save.Item{{Name: "x", Addr: addr, Size: mib}}, 0)
		check(t, err)
		return p.Wait()
	}
	folder := t.TempDir()
	in := func(name string) string { return filepath.Join(folder, name) }
	for _, mode := range []fs.FileMode{0o600, 0o666, 0o444} {
		check(t, os.WriteFile(in("old"), []byte("old"), 0o600))
		check(t, os.Chmod(in("old"), mode)) // whatever the umask is
		check(t, write(in("old")))
		if now := must[fs.FileInfo](t)(os.Stat(in("old"))).Mode(); now != mode || len(read(t, in("old"))["x"]) != mib {
			t.Errorf("a file of mode %v has %v now", mode, now)
		}
		check(t, os.Remove(in("old")))
	}

	check(t, os.Mkdir(in("there"), 0o777))
	check(t, os.WriteFile(in("there/file"), []byte("old"), 0o640))
	check(t, os.Symlink("there/file", in("link")))
	check(t, write(in("link")))
	if must[fs.FileInfo](t)(os.Lstat(in("link"))).Mode()&fs.ModeSymlink == 0 || len(read(t, in("there/file"))["x"]) != mib {
		t.Error("the link was replaced and not the file that it names")
	}
	if mode := must[fs.FileInfo](t)(os.Stat(in("there/file"))).Mode(); mode != 0o640 {
		t.Errorf("behind a link: mode %v", mode)
	}

	check(t, os.Symlink("nowhere", in("dangling")))
	check(t, os.Symlink("there", in("to a folder")))
	for _, name := range []string{"dangling", "there", "to a folder"} {
		err := write(in(name))
		if err == nil || !strings.Contains(err.Error(), "link") && !strings.Contains(err.Error(), "no regular file") {
			t.Errorf("%s: %v", name, err)
		}
	}
	left := must[[]string](t)(filepath.Glob(in("*/.save-*")))
	if left = append(left, must[[]string](t)(filepath.Glob(in(".save-*")))...); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
