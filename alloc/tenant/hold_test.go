//go:build linux

package tenant_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc/tenant"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/cuda"
	"github.com/ashlar-mem/ashlar/driver/cuda/cudatest"
)

func gpu(t *testing.T) *cuda.Device {
	return cudatest.Device(t, cudatest.Use(t, "FAKECUDA_MEMORY=536870912", "FAKECUDA_CONTEXT=0"))
}

func free(t *testing.T, d driver.Driver) uint64 {
	t.Helper()
	n, _, err := d.MemInfo()
	check(t, err)
	return n / mib
}

// What is held is there when everything else of the card is taken.
func TestHold(t *testing.T) {
	d := gpu(t)
	g := must(tenant.New(d, 400*mib, tenant.Options{Hold: true}))
	serve := must(g.Add("serve", tenant.Terms{Guarantee: 210 * mib}))
	if n := free(t, d); n != 512-210 {
		t.Fatalf("%d MiB are free after 210 are held", n)
	}
	others := must(d.Malloc((512-210)*mib, 0))
	expect := func(what string, want uint64) {
		t.Helper()
		if n := free(t, d); n != want {
			t.Errorf("%s: %d MiB are free, not %d", what, n, want)
		}
	}
	for round := range 3 {
		var blocks []uint64
		for _, size := range []uint64{1, 100 * mib, 1000, 900 << 10, 80 * mib, 200 << 10} { // granules of both sizes
			addr, err := serve.Malloc(size, 0)
			if err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			blocks = append(blocks, addr)
		}
		expect("in use", 0)
		var oom *tenant.OutOfMemoryError
		if _, err := serve.Malloc(100*mib, 0); !errors.As(err, &oom) || oom.Reason != tenant.DeviceFull || oom.Guaranteed() {
			t.Errorf("beyond the guarantee: %v", err)
		}
		for _, addr := range blocks {
			check(t, serve.Free(addr))
		}
		check(t, serve.Allocator().EmptyCache())
		expect("emptied", 0)
	}
	check(t, d.Free(others, (512-210)*mib))
	expect("the others gone", 512-210)
	// Plain segments are made of what is held too.
	check(t, serve.Allocator().Configure("expandable_segments:False"))
	addr := must(serve.Malloc(100*mib, 0))
	expect("a plain segment", 512-210)
	check(t, serve.Free(addr))
	check(t, serve.Allocator().EmptyCache())
	expect("freed", 512-210)
	check(t, serve.Resize(tenant.Terms{Guarantee: 40 * mib}))
	expect("resized", 512-40)
	check(t, serve.Close())
	expect("closed", 512)
}

// A guarantee that the device has not got is refused, and nothing stays behind.
func TestHoldTooMuch(t *testing.T) {
	d := gpu(t)
	g := must(tenant.New(d, 500*mib, tenant.Options{Hold: true}))
	others := must(d.Malloc(400*mib, 0))
	if _, err := g.Add("serve", tenant.Terms{Guarantee: 200 * mib}); !errors.Is(err, driver.ErrOutOfMemory) || !strings.Contains(err.Error(), "are missing") {
		t.Errorf("%v", err)
	}
	if n := free(t, d); n != 112 {
		t.Errorf("%d MiB are free", n)
	}
	serve := must(g.Add("serve", tenant.Terms{}))
	if err := serve.Resize(tenant.Terms{Guarantee: 200 * mib}); err == nil || free(t, d) != 112 || g.Usage().Tenants[0].Guarantee != 0 {
		t.Errorf("%v, %d MiB are free, %+v", err, free(t, d), g.Usage())
	}
	check(t, d.Free(others, 400*mib))
	check(t, serve.Resize(tenant.Terms{Guarantee: 200 * mib}))
	check(t, g.Close())
}

// Without a hold the error says that the device is full.
func TestWithoutHold(t *testing.T) {
	d := gpu(t)
	g := must(tenant.New(d, 400*mib, tenant.Options{}))
	serve := must(g.Add("serve", tenant.Terms{Guarantee: 200 * mib}))
	others := must(d.Malloc(400*mib, 0))
	var oom *tenant.OutOfMemoryError
	if _, err := serve.Malloc(150*mib, 0); !errors.As(err, &oom) || oom.Reason != tenant.DeviceFull || !oom.Guaranteed() {
		t.Errorf("%v", err)
	}
	check(t, d.Free(others, 400*mib))
	check(t, serve.Free(must(serve.Malloc(150*mib, 0))))
	check(t, g.Close())
}
