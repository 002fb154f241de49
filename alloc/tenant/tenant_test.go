package tenant_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/alloc/monitor"
	"github.com/ashlar-mem/ashlar/alloc/tenant"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/settings"
)

// A trainer that grows until it fails takes nothing from a server.
func TestGuarantee(t *testing.T) {
	g := must(tenant.New(sim.New(sim.Config{TotalMemory: 1000 * mib}), 1000*mib, tenant.Options{}))
	serve := must(g.Add("serve", tenant.Terms{Guarantee: 400 * mib, Priority: 10}))
	train := must(g.Add("train", tenant.Terms{}))
	var oom *tenant.OutOfMemoryError
	taken := 0
	for ; ; taken += 20 {
		if _, err := train.Malloc(20*mib, 0); errors.As(err, &oom) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if taken != 600 {
		t.Errorf("the trainer got %d MiB", taken)
	}
	var engine *alloc.OutOfMemoryError
	if oom.Tenant != "train" || oom.Reason != tenant.AboveLimit || oom.Refused != 20*mib || oom.Guaranteed() || !errors.As(error(oom), &engine) || !errors.Is(oom, driver.ErrOutOfMemory) {
		t.Errorf("%+v", oom)
	}
	if text := oom.Error(); !strings.HasPrefix(text, "CUDA out of memory. Tried to allocate 20.00 MiB.") || !strings.Contains(text, "Tenant train has 600.00 MiB reserved, 0 B guaranteed") {
		t.Error(text)
	}
	for range 20 {
		if _, err := serve.Malloc(20*mib, 1); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := serve.Malloc(20*mib, 1); !errors.As(err, &oom) || !slices.Equal(oom.Above, []tenant.Share{{"train", 600 * mib}}) {
		t.Errorf("%v", err)
	}
	u := g.Usage()
	if u.Reserved != 1000*mib || u.Idle != 0 || u.Tenants[0].Reserved != 400*mib || u.Tenants[1].Name != "train" {
		t.Errorf("%+v", u)
	}
}

// Caches above the guarantees go, lowest priority first, and no more than needed.
func TestTrim(t *testing.T) {
	g := must(tenant.New(sim.New(sim.Config{TotalMemory: 1000 * mib, Events: sim.Manual}), 400*mib, tenant.Options{}))
	var all []*tenant.Tenant
	for i, terms := range []tenant.Terms{{Priority: 2, Guarantee: 20 * mib}, {Priority: 1}, {Priority: 3}} {
		all = append(all, must(g.Add([]string{"a", "b", "c"}[i], terms)))
	}
	for _, o := range all[:2] {
		check(t, o.Free(must(o.Malloc(100*mib, 0))))
	}
	kept := must(all[2].Malloc(200*mib, 0))
	check(t, all[2].Free(must(all[2].Malloc(40*mib, 0)))) // takes b's 100 MiB
	trims := func() (out []int64) {
		for _, u := range g.Usage().Tenants {
			out = append(out, u.Trims, u.TrimsCaused)
		}
		return out
	}
	if got := trims(); !slices.Equal(got, []int64{0, 0, 1, 0, 0, 1}) {
		t.Errorf("%v", got)
	}
	must(all[2].Malloc(140*mib, 0)) // of a's, down to below its guarantee
	if got := trims(); !slices.Equal(got, []int64{1, 0, 1, 0, 0, 2}) {
		t.Errorf("%v", got)
	}
	// A freed block that another stream still uses is waited for.
	check(t, all[2].RecordStream(kept, 7))
	check(t, all[2].Free(kept))
	if _, err := all[1].Malloc(150*mib, 0); err != nil {
		t.Error(err)
	}
}

func TestCeiling(t *testing.T) {
	g := must(tenant.New(sim.New(sim.Config{}), 400*mib, tenant.Options{}))
	a := must(g.Add("a", tenant.Terms{Guarantee: 40 * mib, Ceiling: 60 * mib}))
	must(a.Malloc(60*mib, 0))
	var oom *tenant.OutOfMemoryError
	if _, err := a.Malloc(1, 0); !errors.As(err, &oom) || oom.Reason != tenant.AboveCeiling || !strings.Contains(err.Error(), "exceed its ceiling") {
		t.Errorf("%v", err)
	}
	check(t, a.Resize(tenant.Terms{Guarantee: 40 * mib, Ceiling: 80 * mib}))
	must(a.Malloc(1, 0))
}

func TestResizeAndClose(t *testing.T) {
	g := must(tenant.New(sim.New(sim.Config{}), 400*mib, tenant.Options{}))
	a := must(g.Add("a", tenant.Terms{Guarantee: 100 * mib}))
	b := must(g.Add("b", tenant.Terms{}))
	addr := must(b.Malloc(200*mib, 0))
	check(t, b.Free(must(b.Malloc(100*mib, 0))))
	check(t, a.Resize(tenant.Terms{Guarantee: 200 * mib})) // b's cache goes
	var short *tenant.GuaranteeError
	if err := a.Resize(tenant.Terms{Guarantee: 220 * mib}); !errors.As(err, &short) || short.Short != 20*mib || !slices.Equal(short.Holders, []tenant.Share{{"b", 200 * mib}}) {
		t.Errorf("%v", err)
	}
	if _, err := g.Add("c", tenant.Terms{Guarantee: 401 * mib}); !errors.As(err, &short) {
		t.Errorf("%v", err)
	}
	var used *tenant.InUseError
	if err := b.Close(); !errors.As(err, &used) || used.Bytes != 200*mib {
		t.Errorf("%v", err)
	}
	check(t, b.Free(addr))
	check(t, b.Close())
	check(t, b.Close())
	if _, err := b.Malloc(1, 0); err == nil {
		t.Error("a closed tenant got memory")
	}
	if err := b.Resize(tenant.Terms{}); err == nil {
		t.Error("a closed tenant was resized")
	}
	must(g.Add("b", tenant.Terms{}))
	if err := g.SetLimit(199 * mib); err == nil {
		t.Error("a limit below a guarantee was accepted")
	}
	check(t, g.SetLimit(500*mib))
	if u := g.Usage(); u.Limit != 500*mib {
		t.Errorf("%+v", u)
	}
	for _, name := range []string{"", "a"} {
		if _, err := g.Add(name, tenant.Terms{}); err == nil {
			t.Errorf("%q was accepted", name)
		}
	}
	if _, err := g.Add("d", tenant.Terms{Guarantee: 2, Ceiling: 1}); err == nil {
		t.Error("a ceiling below the guarantee was accepted")
	}
	check(t, g.Close())
}

// Without the memory that the limit promises the error says so.
func TestDeviceFull(t *testing.T) {
	d := sim.New(sim.Config{TotalMemory: 400 * mib})
	g := must(tenant.New(d, 400*mib, tenant.Options{}))
	a := must(g.Add("a", tenant.Terms{Guarantee: 200 * mib}))
	d.SetUsable(100 * mib)
	var oom *tenant.OutOfMemoryError
	if _, err := a.Malloc(140*mib, 0); !errors.As(err, &oom) || oom.Reason != tenant.DeviceFull || !oom.Guaranteed() || !strings.Contains(err.Error(), "outside the group") {
		t.Errorf("%v", err)
	}
	if u := g.Usage(); u.Reserved != d.Held() {
		t.Errorf("%+v", u)
	}
	g = must(tenant.New(d, tenant.Unlimited, tenant.Options{}))
	a = must(g.Add("a", tenant.Terms{}))
	if _, err := a.Malloc(140*mib, 0); !errors.As(err, &oom) || oom.Reason != tenant.DeviceFull ||
		!strings.Contains(err.Error(), "; 140.00 MiB more were refused: sim: ") || strings.Contains(err.Error(), "group") {
		t.Errorf("%v", err)
	}
}

// A cache that the driver does not take back is named in the error.
func TestReleaseFails(t *testing.T) {
	d := sim.New(sim.Config{TotalMemory: 400 * mib})
	g := must(tenant.New(d, 400*mib, tenant.Options{}))
	a, b := must(g.Add("a", tenant.Terms{})), must(g.Add("b", tenant.Terms{}))
	check(t, a.Free(must(a.Malloc(400*mib, 0))))
	d.FailKind(sim.Unmap, 1, errors.New("the driver is gone"))
	var oom *tenant.OutOfMemoryError
	if _, err := b.Malloc(200*mib, 0); !errors.As(err, &oom) || oom.ReleaseError == nil || !strings.Contains(err.Error(), "the driver is gone") {
		t.Errorf("%v", err)
	}
	must(b.Malloc(200*mib, 0))
}

// lenders is a group in which two tenants borrow what is guaranteed to a third.
func lenders(t *testing.T, c *clock) (owner, low, high *tenant.Tenant, dev *sim.Device) {
	dev = sim.New(sim.Config{TotalMemory: 400 * mib, Events: sim.Manual})
	g := must(tenant.New(dev, 400*mib, c.options()))
	owner = must(g.Add("owner", tenant.Terms{Guarantee: 400 * mib}))
	low = must(g.Add("low", tenant.Terms{Priority: 1}))
	high = must(g.Add("high", tenant.Terms{Priority: 2}))
	t.Cleanup(func() {
		if u := g.Usage(); u.Reserved != dev.Held() {
			t.Errorf("%+v, the device has given %d", u, dev.Held())
		}
	})
	return owner, low, high, dev
}

func TestRevoke(t *testing.T) {
	var c clock
	owner, low, high, _ := lenders(t, &c)
	if _, err := low.Malloc(1, 0); err == nil {
		t.Fatal("what is guaranteed to another was given away")
	}
	var revoked []string
	lend := func(to *tenant.Tenant, name string) {
		var addr uint64
		addr = must(to.MallocRevocable(100*mib, 0, func() {
			revoked = append(revoked, name)
			check(t, to.Free(addr))
		}))
	}
	lend(high, "h1")
	lend(low, "l1")
	lend(high, "h2")
	lend(low, "l2")
	if _, err := high.MallocRevocable(20*mib, 0, func() {}); err == nil {
		t.Error("more was lent than there is")
	}
	must(owner.Malloc(200*mib, 1))
	must(owner.Malloc(100*mib, 1))
	if !slices.Equal(revoked, []string{"l2", "l1", "h2"}) {
		t.Errorf("%v", revoked)
	}
	if c.now() != (time.Time{}) {
		t.Errorf("the requests waited until %v for what was freed at once", c.now())
	}
}

// A request waits for frees, and for the events of what was freed.
func TestRevokeWaits(t *testing.T) {
	var c clock
	owner, low, _, dev := lenders(t, &c)
	addr := must(low.MallocRevocable(300*mib, 0, func() {}))
	check(t, low.RecordStream(addr, 5))
	step := 0
	c.onSleep = func() {
		switch step++; step {
		case 10:
			check(t, low.Free(addr))
		case 20:
			dev.Complete(5)
		}
	}
	if _, err := owner.Malloc(200*mib, 1); err != nil || step != 20 {
		t.Errorf("after %d naps: %v", step, err)
	}
}

func TestRevokeDeadline(t *testing.T) {
	var c clock
	owner, low, high, _ := lenders(t, &c)
	must(high.MallocRevocable(100*mib, 0, func() {}))
	addr := must(low.MallocRevocable(200*mib, 0, func() {}))
	var oom *tenant.OutOfMemoryError
	_, err := owner.Malloc(200*mib, 1)
	if !errors.As(err, &oom) || oom.Reason != tenant.LentOut || !oom.Guaranteed() || !slices.Equal(oom.NotReturned, []tenant.Share{{"low", 200 * mib}}) ||
		!slices.Equal(oom.Lent, []tenant.Share{{"low", 200 * mib}, {"high", 100 * mib}}) {
		t.Errorf("%v", err)
	}
	if waited := c.now().Sub(time.Time{}); waited != 100*time.Millisecond {
		t.Errorf("waited for %v", waited)
	}
	check(t, low.Free(addr))
	must(owner.Malloc(200*mib, 1))
	if _, err := low.MallocRevocable(1, 0, nil); err == nil {
		t.Error("a block that cannot be revoked was lent")
	}
}

// alloc/monitor watches a tenant as any allocator.
func TestMonitor(t *testing.T) {
	g := must(tenant.New(sim.New(sim.Config{}), 400*mib, tenant.Options{}))
	a := must(g.Add("a", tenant.Terms{}))
	check(t, a.Free(must(a.Malloc(100*mib, 0))))
	m := must(monitor.New(a.Allocator(), monitor.Options{High: 0.5, Release: true}))
	if r := m.Check(); !r.Raised || g.Usage().Reserved != 0 {
		t.Errorf("%+v", r)
	}
}

func TestHoldNeedsADriver(t *testing.T) {
	plain := struct{ driver.Driver }{sim.New(sim.Config{})}
	if _, err := tenant.New(plain, 400*mib, tenant.Options{Hold: true}); err == nil {
		t.Error("a driver without physical memory was accepted")
	}
}

// An error says why its own request failed: what an earlier one was refused for has
// nothing to do with one that the driver is never asked for.
func TestRefusalOfThisRequest(t *testing.T) {
	for _, expandable := range []bool{false, true} {
		conf := settings.Default()
		conf.ExpandableSegments = expandable
		g := must(tenant.New(sim.New(sim.Config{TotalMemory: 400 * mib}), 200*mib, tenant.Options{}))
		a := must(g.Add("a", tenant.Terms{}))
		b := must(g.Add("b", tenant.Terms{}, alloc.WithSettings(conf)))
		must(a.Malloc(100*mib, 0))
		refused := func(what string, want tenant.Reason, malloc func() (uint64, error)) *tenant.OutOfMemoryError {
			t.Helper()
			_, err := malloc()
			var oom *tenant.OutOfMemoryError
			if !errors.As(err, &oom) {
				t.Fatalf("%s: %v", what, err)
			}
			if oom.Reason != want || (want == tenant.NotRefused) != (oom.Refused == 0) || (want == tenant.NotRefused) != (oom.Refusal == nil) || oom.Guaranteed() {
				t.Errorf("%s: %d of %d bytes, %v: %v", what, oom.Reason, oom.Refused, oom.Refusal, oom)
			}
			return oom
		}
		above := func() (uint64, error) { return b.Malloc(150*mib, 0) }
		if oom := refused("above the limit", tenant.AboveLimit, above); !strings.Contains(oom.Refusal.Error(), "above the group's limit") {
			t.Error(oom.Refusal)
		}
		refused("too large", tenant.NotRefused, func() (uint64, error) { return b.Malloc(math.MaxUint64, 0) })

		refused("above the limit again", tenant.AboveLimit, above)
		check(t, b.Resize(tenant.Terms{Guarantee: 90 * mib}))
		check(t, b.Allocator().SetMemoryFraction(0.05))
		refused("the allocator's own limit", tenant.NotRefused, func() (uint64, error) { return b.Malloc(50*mib, 0) })
		check(t, b.Allocator().SetMemoryFraction(1))

		// Revocable blocks have reasons of their own, and no guarantee.
		check(t, b.Resize(tenant.Terms{Guarantee: 90 * mib, Ceiling: 95 * mib}))
		refused("above the ceiling", tenant.AboveCeiling, above)
		must(a.MallocRevocable(90*mib, 0, func() {}))
		refused("no idle memory", tenant.AboveLimit, func() (uint64, error) { return b.MallocRevocable(60*mib, 0, func() {}) })
	}
}

// A group that could serve nobody is not made.
func TestNewRefuses(t *testing.T) {
	if _, err := tenant.New(nil, 400*mib, tenant.Options{}); err == nil || !strings.Contains(err.Error(), "needs a driver") {
		t.Error(err)
	}
	if _, err := tenant.New(sim.New(sim.Config{}), 0, tenant.Options{}); err == nil || !strings.Contains(err.Error(), "limit of 0") {
		t.Error(err)
	}
}
