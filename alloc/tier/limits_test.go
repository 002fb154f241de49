package tier

import (
	"errors"
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/alloc/tenant"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/sim"
)

// TestRestoreLimits: what comes home stays within the allocator's limit, and the rest comes when there is room.
func TestRestoreLimits(t *testing.T) {
	r := newRig(t, 400*mib, Options{})
	first, second := r.malloc(40*mib), r.malloc(60*mib)
	if _, err := r.sp.Park(true); err != nil {
		t.Fatal(err)
	}
	r.engine.SetLimit(120 * mib)
	other := r.malloc(80 * mib)
	report, err := r.sp.Restore()
	if used := r.engine.Usage().Reserved; !errors.Is(err, driver.ErrOutOfMemory) || report.In != 40*mib || used != 120*mib {
		t.Errorf("%+v, %v, %d MiB reserved", report, err, used/mib)
	}
	r.free(other) // cached: it gives way
	if report, err := r.sp.Restore(); err != nil || report.In != 60*mib {
		t.Errorf("%+v, %v", report, err)
	}
	r.want("the first", first, true)
	r.want("the second", second, true)
	if used := r.engine.Usage().Reserved; used != 100*mib {
		t.Errorf("%d MiB reserved", used/mib)
	}
}

// TestTenantLimits: a tenant that was parked comes home within its ceiling, and takes nothing that is guaranteed to another; a mark and a
// Fetch bring no more home, and what was not moved is not booked.
func TestTenantLimits(t *testing.T) {
	for _, how := range []string{"restore", "fetch", "step"} {
		t.Run(how, func(t *testing.T) {
			dev := sim.New(sim.Config{TotalMemory: 400 * mib, HostMemory: 4000 * mib})
			store, err := New(dev, Options{Host: 4000 * mib, Overflow: how != "restore", Alone: never, Budget: time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			group, err := tenant.New(dev, 400*mib, tenant.Options{})
			if err != nil {
				t.Fatal(err)
			}
			add := func(name string, terms tenant.Terms) (*Space, *tenant.Tenant) {
				sp := store.Space(name)
				terms.Driver = sp.Driver()
				of, err := group.Add(name, terms, alloc.WithSettings(expandable(t)))
				if err == nil {
					err = sp.Attach(of.Allocator())
				}
				if err != nil {
					t.Fatal(err)
				}
				return sp, of
			}
			malloc := func(of *tenant.Tenant, bytes uint64) uint64 {
				t.Helper()
				addr, err := of.Malloc(bytes, 0)
				if err != nil {
					t.Fatal(err)
				}
				return addr
			}
			sp, train := add("train", tenant.Terms{Ceiling: 200 * mib})
			_, serve := add("serve", tenant.Terms{Guarantee: 200 * mib})
			if how == "restore" {
				malloc(train, 100*mib)
				if _, err := sp.Park(true); err != nil {
					t.Fatal(err)
				}
				malloc(train, 160*mib)
				if report, err := sp.Restore(); !errors.Is(err, driver.ErrOutOfMemory) || report.In != 40*mib {
					t.Errorf("%+v, %v", report, err)
				}
			} else {
				malloc(train, 160*mib)
				far := malloc(train, 100*mib) // on the host, and two thirds would come back to the device
				for range 1 + leastPause {
					if how == "fetch" {
						_, err = sp.Fetch([]uint64{far})
					} else {
						_, err = store.Step()
					}
					if err != nil {
						t.Error(err)
					}
				}
				if st := sp.Stats(); st.Host != 60*mib {
					t.Errorf("%d MiB on the host", st.Host/mib)
				}
			}
			for _, u := range group.Usage().Tenants {
				if u.Name == "train" && u.Reserved != 200*mib {
					t.Errorf("%d MiB are booked of 200", u.Reserved/mib)
				}
			}
			malloc(serve, 200*mib)
		})
	}
}

func never() bool { return false }

// TestNotClaimed: what was booked for memory that could not come home is given back.
func TestNotClaimed(t *testing.T) {
	dev := sim.New(sim.Config{TotalMemory: 100 * mib, HostMemory: 1000 * mib})
	store, err := New(dev, Options{Host: 1000 * mib})
	if err != nil {
		t.Fatal(err)
	}
	group, err := tenant.New(dev, 100*mib, tenant.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sp := store.Space("t")
	of, err := group.Add("t", tenant.Terms{Driver: sp.Driver()}, alloc.WithSettings(expandable(t)))
	if err == nil {
		err = sp.Attach(of.Allocator())
	}
	if err == nil {
		_, err = of.Malloc(80*mib, 0)
	}
	if err == nil {
		_, err = sp.Park(true)
	}
	hog, err2 := dev.Malloc(60*mib, 0) // somebody else's
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	report, err := sp.Restore()
	if reserved := group.Usage().Reserved; !errors.Is(err, driver.ErrOutOfMemory) || report.In >= 80*mib || reserved != report.In {
		t.Errorf("%+v, %v, %d MiB are booked", report, err, reserved/mib)
	}
	if err := dev.Free(hog, 60*mib); err != nil {
		t.Fatal(err)
	}
	if _, err := sp.Restore(); err != nil || group.Usage().Reserved != 80*mib {
		t.Errorf("%v, %+v", err, group.Usage())
	}
}

// TestOverflowOfAll: spaces overflow no more together than the store allows; what was parked does not count.
func TestOverflowOfAll(t *testing.T) {
	r := newRig(t, 40*mib, Options{Overflow: true, Alone: never})
	r.store.SetOverflow(60 * mib)
	parked := r.malloc(40 * mib)
	if _, err := r.sp.ParkBlocks([]uint64{parked}); err != nil {
		t.Fatal(err)
	}
	r.malloc(40 * mib)
	other, engine := r.space("other")
	r.malloc(20 * mib)
	for i, fits := range []bool{true, true, false} {
		if _, err := engine.Malloc(20*mib, 0); err == nil != fits {
			t.Errorf("request %d: %v", i, err)
		}
	}
	if all, one := r.store.Stats(), other.Stats(); all.Spilt != 60*mib || one.Spilt != 40*mib || all.Host != 100*mib {
		t.Errorf("%+v, %+v", all, one)
	}
	if report, err := other.Park(true); err != nil || report.Out != 0 {
		t.Errorf("%+v, %v", report, err)
	}
	if all := r.store.Stats(); all.Spilt != 20*mib {
		t.Errorf("after what had overflowed was parked: %+v", all)
	}
}

// TestHostRoomInPages: what goes ahead of later requests leaves the host's limit alone, so that more room never fails what less serves.
func TestHostRoomInPages(t *testing.T) {
	for host := uint64(40); host <= 100; host++ {
		r := newRig(t, 200*mib, Options{Host: host * mib, Overflow: true, Alone: always})
		for range 10 {
			r.sp.Cold(r.malloc(20 * mib))
		}
		made := r.malloc(30 * mib) // two pages; a quantum is more
		if st := r.sp.Stats(); st.Host < 40*mib || st.Host > host*mib || !r.on(made) {
			t.Errorf("%d MiB of the host: %+v", host, st)
		}
	}
}

// TestMark: a mark beside others lets blocks age, and moves nothing.
func TestMark(t *testing.T) {
	r := newRig(t, 100*mib, Options{Overflow: true, Alone: never, Budget: time.Hour})
	cold := r.malloc(60 * mib)
	r.sp.Cold(cold)
	far := r.malloc(80 * mib)
	r.free(r.malloc(60 * mib)) // on the host, too: room that a mark would use
	mark := func(mark func() (Report, error), moves bool) {
		t.Helper()
		if report, err := mark(); err != nil || report.In+report.Out > 0 != moves {
			t.Errorf("%+v, %v", report, err)
		}
	}
	for range 1 + leastPause {
		mark(r.store.Mark, false)
	}
	r.want("what is cold", cold, true)
	r.free(cold)
	if err := r.engine.EmptyCache(); err != nil {
		t.Fatal(err)
	}
	mark(r.store.Mark, false)
	mark(r.store.Step, true)
	r.want("what overflowed", far, true)
}

// TestGuess: what was inferred gives way to what was said, and to what is inferred later.
func TestGuess(t *testing.T) {
	r := newRig(t, 400*mib, Options{Overflow: true, Alone: always})
	said, guessed, again := r.malloc(100*mib), r.malloc(100*mib), r.malloc(100*mib)
	r.sp.Cold(said)
	r.sp.Guess(said, false)
	r.sp.Guess(guessed, true)
	r.sp.Guess(again, true)
	r.sp.Guess(again, false)
	if r.sp.Guess(1, true) {
		t.Error("there is a block at 1")
	}
	for range 3 {
		r.step()
	}
	r.malloc(300 * mib)
	r.want("what was said to be cold", said, false)
	r.want("what seems cold", guessed, false)
	r.want("what is busy after all", again, true)
}
