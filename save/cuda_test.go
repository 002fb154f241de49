//go:build linux

package save_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/ashlar-mem/ashlar/driver/cuda/cudatest"
	"github.com/ashlar-mem/ashlar/save"
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
