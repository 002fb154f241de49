//go:build linux

package save_test

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/cuda"
	"github.com/ashlar-mem/ashlar/driver/cuda/cudatest"
	"github.com/ashlar-mem/ashlar/driver/save"
)

// A save through driver/cuda and a stand-in for NVIDIA's driver, whose work is
// done at once or only when somebody waits for it. Nothing is left behind.
func TestCUDA(t *testing.T) {
	for _, lazy := range []bool{false, true} {
		t.Run(fmt.Sprint("lazy ", lazy), func(t *testing.T) {
			const size = 3_000_000
			lib := cudatest.Use(t)
			lib.SetLazy(lazy)
			d := cudatest.Device(t, lib)
			stream := must[uint64](t)(d.NewStream())
			addr := must[uint64](t)(d.Malloc(size, stream))
			s := must[*save.Saver](t)(save.New(d, save.Options{Chunk: 1 << 20}))
			path := filepath.Join(t.TempDir(), "out")

			check(t, d.Fill(addr, 1, size, stream))
			p := must[*save.Pending](t)(s.Save(t.Context(), path, []save.Item{{Name: "x", Addr: addr, Size: size}}, stream))
			check(t, p.Fence(stream))
			check(t, d.Fill(addr, 2, size, stream))
			check(t, p.Wait())
			if got := read(t, path)["x"]; !bytes.Equal(got, bytes.Repeat([]byte{1}, size)) {
				t.Errorf("the file holds %d ... %d", got[0], got[size-1])
			}
			check(t, d.Synchronize(stream))
			check(t, s.Close())
			check(t, d.CloseStream(stream))
			check(t, d.Free(addr, size))
		})
	}
}

// A stream that is being captured cannot be saved from, nor wait for a save; the
// capture and the saver go on.
func TestCaptured(t *testing.T) {
	const size = 3_000_000
	d := cudatest.Device(t, cudatest.Use(t, "FAKECUDA_LAZY=1"))
	captured, other := must[uint64](t)(d.NewStream()), must[uint64](t)(d.NewStream())
	addr := must[uint64](t)(d.Malloc(size, other))
	s := must[*save.Saver](t)(save.New(d, save.Options{Chunk: 1 << 20}))
	items := []save.Item{{Name: "x", Addr: addr, Size: size}}
	path := filepath.Join(t.TempDir(), "out")

	release := must[func()](t)(d.Bind())
	check(t, d.BeginCapture(captured, cuda.CaptureRelaxed))
	if _, err := s.Save(t.Context(), path, items, captured); !errors.Is(err, driver.ErrCapturing) {
		t.Errorf("saving from a captured stream: %v", err)
	}
	p := must[*save.Pending](t)(s.Save(t.Context(), path, items, other))
	// Once the memory was copied there is nothing left to wait for.
	if err := p.Fence(captured); err != nil && !errors.Is(err, driver.ErrCapturing) {
		t.Errorf("a captured stream waits for a save: %v", err)
	}
	check(t, p.Wait())
	g := must[*cuda.Graph](t)(d.EndCapture(captured))
	check(t, g.Close())
	release()

	p = must[*save.Pending](t)(s.Save(t.Context(), path, items, captured))
	check(t, p.Fence(captured))
	check(t, p.Wait())
	check(t, s.Close())
	check(t, d.CloseStream(captured))
	check(t, d.CloseStream(other))
	check(t, d.Free(addr, size))
}

// When the device cannot tell whether a copy has ended, the saves behind it fail
// too: their buffers may be written to at any time.
func TestBrokenQueue(t *testing.T) {
	const size = 3_000_000
	lib := cudatest.Use(t, "FAKECUDA_LAZY=1")
	d := cudatest.Device(t, lib)
	addr := must[uint64](t)(d.Malloc(size, 0))
	s := must[*save.Saver](t)(save.New(d, save.Options{Chunk: 1 << 20, Buffers: 2}))
	lib.Fail("cuEventSynchronize", 1, 719)
	folder := t.TempDir()
	var all []*save.Pending
	for i := range 4 {
		p, err := s.Save(t.Context(), filepath.Join(folder, fmt.Sprint(i)), []save.Item{{Name: "x", Addr: addr, Size: size}}, 0)
		if err == nil {
			all = append(all, p)
		} else if !strings.Contains(err.Error(), "make another saver") {
			t.Errorf("save %d: %v", i, err)
		}
	}
	for i, p := range all {
		if err := p.Wait(); err == nil || i > 0 && !strings.Contains(err.Error(), "make another saver") {
			t.Errorf("save %d: %v", i, err)
		}
	}
	if files := must[[]string](t)(filepath.Glob(filepath.Join(folder, "*"))); len(files) > 0 {
		t.Errorf("files %v", files)
	}
	check(t, s.Close())
	check(t, d.Free(addr, size))
}
