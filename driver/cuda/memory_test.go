//go:build linux

package cuda_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/cuda"
	"github.com/ashlar-mem/ashlar/driver/cuda/cudatest"
)

// newDevice is a stand-in with so much memory, and its first GPU.
func newDevice(t *testing.T, settings ...string) (*cudatest.Library, *cuda.Device) {
	t.Helper()
	lib := cudatest.Use(t, append([]string{"FAKECUDA_CONTEXT=0"}, settings...)...)
	return lib, cudatest.Device(t, lib)
}

// must is for calls whose failure means that the test itself is broken.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// code is the driver's code in an error, 0 if there is none.
func code(err error) int {
	var e *cuda.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

func free(t testing.TB, d *cuda.Device) uint64 {
	t.Helper()
	free, total, err := d.MemInfo()
	if err != nil || total != d.TotalMemory() {
		t.Fatalf("MemInfo: %d, %d, %v", free, total, err)
	}
	return free
}

func TestPlainMemory(t *testing.T) {
	_, d := newDevice(t, "FAKECUDA_MEMORY=0x10000000") // 256 MiB
	if d.TotalMemory() != 256*mib || free(t, d) != 256*mib {
		t.Fatalf("%d of %d free", free(t, d), d.TotalMemory())
	}
	a := must(d.Malloc(100*mib+1, 0))
	if got := free(t, d); got != 154*mib {
		t.Errorf("%d free, want 154 MiB", got)
	}
	_, err := d.Malloc(155*mib, 0)
	if !errors.Is(err, driver.ErrOutOfMemory) || code(err) != 2 {
		t.Errorf("more than is free: %v", err)
	}
	if want := "cuMemAlloc_v2: out of memory (CUDA_ERROR_OUT_OF_MEMORY, code 2)"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	check(t, d.Free(a, 100*mib+1))
	if err := d.Free(a, 100*mib+1); code(err) != 1 || errors.Is(err, driver.ErrOutOfMemory) {
		t.Errorf("freed twice: %v", err)
	}
	if err := d.Free(0, 0); err == nil {
		t.Error("address 0 was freed")
	}
	if free(t, d) != 256*mib {
		t.Errorf("%d free at the end", free(t, d))
	}
}

func TestVirtualMemory(t *testing.T) {
	const g = 20 * mib
	lib, d := newDevice(t, "FAKECUDA_MEMORY=0x10000000")
	if d.Granularity() != 2*mib {
		t.Fatalf("granularity %d", d.Granularity())
	}
	base := must(d.Reserve(400*mib, 0))
	defer func() { check(t, d.Unreserve(base, 400*mib)) }()

	for _, tt := range []struct {
		name                string
		addr, size, granule uint64
		says                string
	}{
		{"granule", base, 3 * mib, 3 * mib, "Map: a granule of 3145728 bytes is no multiple of the 2097152 bytes that GPU 0 (Stand-in GPU) maps at once"},
		{"no granule", base, g, 0, "a granule of 0 bytes"},
		{"size", base, 30 * mib, g, "Map: 31457280 bytes are no whole number of granules of 20971520 bytes"},
		{"no size", base, 0, g, "Map: 0 bytes"},
		{"address", base + 4096, g, g, "is no multiple of 2097152"},
		{"outside", base + 400*mib, g, g, "cuMemMap: invalid argument"},
	} {
		if err := d.Map(tt.addr, tt.size, tt.granule); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v\nwant %s", tt.name, err, tt.says)
		}
	}

	check(t, d.Map(base, 3*g, g))
	check(t, d.Map(base+3*g, 2*g, g))
	if got := free(t, d); got != 156*mib || lib.Count("handles") != 0 || lib.Count("mappings") != 5 {
		t.Errorf("%d free, %d handles, %d mappings", got, lib.Count("handles"), lib.Count("mappings"))
	}
	if err := d.Map(base+4*g, 2*g, g); code(err) != 1 || lib.Count("mappings") != 5 {
		t.Errorf("over memory that is mapped: %v, %d mappings", err, lib.Count("mappings"))
	}
	// What is mapped by several calls is one piece of memory.
	check(t, d.Fill(base+g, 7, 3*g, 0))
	check(t, d.Synchronize(0))

	// Twelve granules fit, five of them are mapped, the eighth of these fails.
	if err := d.Map(base+5*g, 8*g, g); !errors.Is(err, driver.ErrOutOfMemory) {
		t.Errorf("more than fits: %v", err)
	}
	if got := free(t, d); got != 156*mib || lib.Count("handles") != 0 || lib.Count("mappings") != 5 {
		t.Errorf("after the failure: %d free, %d handles, %d mappings", got, lib.Count("handles"), lib.Count("mappings"))
	}

	if err := d.Unmap(base+4*g, 2*g, g, 0); code(err) != 1 || lib.Count("mappings") != 5 {
		t.Errorf("unmapping what is not mapped: %v, %d mappings", err, lib.Count("mappings"))
	}
	check(t, d.Unmap(base+2*g, 2*g, g, 0)) // of both calls of Map
	check(t, d.Unmap(base, 2*g, g, 0))
	check(t, d.Unmap(base+4*g, g, g, 0))
	if got := free(t, d); got != 256*mib || lib.Count("mappings") != 0 {
		t.Errorf("at the end: %d free, %d mappings", got, lib.Count("mappings"))
	}
}

// TestMapFailsAnywhere: whichever driver call fails, nothing is mapped and no
// memory is gone.
func TestMapFailsAnywhere(t *testing.T) {
	const g = 2 * mib
	lib, d := newDevice(t)
	base := must(d.Reserve(20*g, 0))
	before := free(t, d)
	for _, name := range []string{"cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuCtxGetCurrent", "cuCtxPushCurrent_v2"} {
		for n := 1; n <= 3; n++ {
			for _, fault := range []int{2, 999} {
				lib.Fail(name, n, fault)
				err := d.Map(base, 3*g, g)
				if n == 1 || name == "cuMemCreate" || name == "cuMemMap" {
					if code(err) != fault || errors.Is(err, driver.ErrOutOfMemory) != (fault == 2) {
						t.Errorf("%s %d fails with %d: %v", name, n, fault, err)
					}
				} else if err != nil {
					t.Errorf("%s is called %d times", name, n)
				}
				lib.Heal()
				if err == nil {
					check(t, d.Unmap(base, 3*g, g, 0))
				}
				if lib.Count("mappings")+lib.Count("handles") != 0 || free(t, d) != before {
					t.Fatalf("%s %d fails: %d mappings, %d handles, %d bytes gone",
						name, n, lib.Count("mappings"), lib.Count("handles"), before-free(t, d))
				}
			}
		}
	}
	check(t, d.Unreserve(base, 20*g))
}

// TestReleaseFails: a handle that cannot be released is lost, but it is not
// mapped and the caller hears of it.
func TestReleaseFails(t *testing.T) {
	lib := cudatest.Use(t)
	d := must(must(cuda.Open()).Device(0))
	base := must(d.Reserve(6*mib, 0))
	lib.Fail("cuMemRelease", 2, 999)
	if err := d.Map(base, 6*mib, 2*mib); code(err) != 999 || lib.Count("mappings") != 0 || lib.Count("handles") != 1 {
		t.Errorf("%v, %d mappings, %d handles", err, lib.Count("mappings"), lib.Count("handles"))
	}
	lib.Fail("cuMemSetAccess", 1, 2)
	lib.Fail("cuMemUnmap", 1, 999)
	err := d.Map(base, 6*mib, 2*mib)
	if code(err) != 2 || !strings.Contains(err.Error(), "6291456 bytes stay mapped: cuMemUnmap") {
		t.Errorf("the undo that failed is not told: %v", err)
	}
	check(t, d.Close())
}

func TestWithoutVirtualMemory(t *testing.T) {
	_, d := newDevice(t, "FAKECUDA_VIRTUAL=0")
	if err := d.Map(0, 2*mib, 2*mib); err == nil || !strings.Contains(err.Error(), "do without expandable segments") {
		t.Errorf("got %v", err)
	}
}

func TestHostMemory(t *testing.T) {
	lib, d := newDevice(t)
	mem := must(d.AllocHost(3 * mib))
	if len(mem) != 3*mib || lib.Count("host") != 1 {
		t.Fatalf("%d bytes, %d pieces", len(mem), lib.Count("host"))
	}
	for i := range mem {
		mem[i] = byte(i * 7)
	}
	addr := must(d.Malloc(3*mib, 0))
	back := make([]byte, 3*mib) // memory of Go works too
	check(t, d.CopyToDevice(addr, mem, 0))
	check(t, d.CopyOnDevice(addr, addr+mib, mib, 0))
	check(t, d.CopyToHost(back, addr, 0))
	check(t, d.Synchronize(0))
	if !bytes.Equal(back[mib:], mem[mib:]) || !bytes.Equal(back[:mib], mem[mib:2*mib]) {
		t.Error("the copies differ")
	}
	if err := d.FreeHost(mem[1:]); code(err) != 1 {
		t.Errorf("a part of it was given back: %v", err)
	}
	check(t, d.FreeHost(mem))
	check(t, d.Free(addr, 3*mib))
	if _, err := d.AllocHost(0); err == nil {
		t.Error("0 bytes of host memory")
	}
	// Nothing to do is no mistake.
	check(t, d.CopyToDevice(1, nil, 0))
	check(t, d.CopyToHost(nil, 1, 0))
	check(t, d.CopyOnDevice(1, 1, 0, 0))
	check(t, d.Fill(1, 1, 0, 0))
}

func TestManagedMemory(t *testing.T) {
	lib, d := newDevice(t)
	s := must(d.NewStream())
	addr, mem, err := d.AllocManaged(4 * mib)
	check(t, err)
	check(t, d.Advise(addr, 4*mib, cuda.PreferPlace, cuda.OnDevice))
	check(t, d.Advise(addr, mib, cuda.AccessedFrom, cuda.OnHost))
	check(t, d.Prefetch(addr, 4*mib, cuda.OnDevice, s))
	check(t, d.Fill(addr, 0x5a, 4*mib, s))
	check(t, d.Prefetch(addr, 4*mib, cuda.OnHost, s))
	check(t, d.Synchronize(s))
	if mem[0] != 0x5a || mem[len(mem)-1] != 0x5a || len(mem) != 4*mib {
		t.Errorf("the host sees %x and %x in %d bytes", mem[0], mem[len(mem)-1], len(mem))
	}
	if err := d.Prefetch(addr, 5*mib, cuda.OnHost, s); code(err) != 1 {
		t.Errorf("beyond the end: %v", err)
	}
	if err := d.Prefetch(addr, mib, cuda.Place(9), s); err == nil || code(err) != 0 {
		t.Errorf("nowhere: %v", err)
	}
	check(t, d.Free(addr, 4*mib))
	check(t, d.CloseStream(s))
	if lib.Count("managed") != 0 {
		t.Error("managed memory left")
	}
}

func TestPool(t *testing.T) {
	_, d := newDevice(t)
	s := must(d.NewStream())
	on := cuda.PoolReuse{FollowEvents: true, Opportunistic: true, InternalDependencies: true}
	if r, err := d.PoolReuse(); err != nil || r != on {
		t.Errorf("reuse at first: %+v, %v", r, err)
	}
	some := cuda.PoolReuse{Opportunistic: true}
	check(t, d.SetPoolReuse(some))
	if r, err := d.PoolReuse(); err != nil || r != some {
		t.Errorf("reuse after it was set: %+v, %v", r, err)
	}
	check(t, d.SetReleaseThreshold(6*mib))
	a := must(d.MallocAsync(4*mib, s))
	b := must(d.MallocAsync(8*mib, s))
	check(t, d.Fill(b, 1, 8*mib, s))
	check(t, d.FreeAsync(b, s))
	if err := d.FreeAsync(b, s); code(err) != 1 {
		t.Errorf("freed twice: %v", err)
	}
	want := cuda.PoolStats{ReleaseThreshold: 6 * mib, Used: 4 * mib, UsedHigh: 12 * mib, Reserved: 6 * mib, ReservedHigh: 12 * mib}
	if got := must(d.PoolStats()); got != want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	check(t, d.TrimPool(0))
	check(t, d.ResetPoolHighs())
	want = cuda.PoolStats{ReleaseThreshold: 6 * mib, Used: 4 * mib, UsedHigh: 4 * mib, Reserved: 4 * mib, ReservedHigh: 4 * mib}
	if got := must(d.PoolStats()); got != want {
		t.Errorf("after trimming %+v\nwant %+v", got, want)
	}
	check(t, d.FreeAsync(a, s))
	check(t, d.CloseStream(s))
}

func TestWithoutPool(t *testing.T) {
	_, d := newDevice(t, "FAKECUDA_POOLS=0")
	if _, err := d.MallocAsync(1, 0); err == nil || !strings.Contains(err.Error(), "no stream-ordered allocation") {
		t.Errorf("got %v", err)
	}
}
