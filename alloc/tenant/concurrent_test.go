package tenant_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc/tenant"
	"github.com/ashlar-mem/ashlar/driver/sim"
)

// Eight goroutines use, lend and resize four tenants at once.
func TestConcurrent(t *testing.T) {
	dev := newCounter(sim.Config{TotalMemory: limit})
	g := must(tenant.New(dev, limit, tenant.Options{}))
	var tenants []*tenant.Tenant
	for i := range 4 {
		tenants = append(tenants, must(g.Add(fmt.Sprint("t", i), tenant.Terms{Guarantee: 100 * mib, Priority: i})))
	}
	rounds := 3000
	if testing.Short() {
		rounds = 500
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			r := rand.New(rand.NewPCG(uint64(i), 1))
			own := tenants[i%len(tenants)]
			var live []uint64
			for range rounds {
				switch {
				case r.IntN(2) == 0 && len(live) > 0:
					at := r.IntN(len(live))
					if err := own.Free(live[at]); err != nil {
						t.Error(err)
					}
					live = append(live[:at], live[at+1:]...)
				case r.IntN(20) == 0:
					lend(t, own, 1+r.Uint64N(60*mib), uint64(i))
				case r.IntN(50) == 0:
					_ = own.Resize(tenant.Terms{Guarantee: r.Uint64N(150 * mib)})
				default:
					addr, err := own.Malloc(1+r.Uint64N(80*mib), uint64(i))
					var oom *tenant.OutOfMemoryError
					switch {
					case err == nil:
						live = append(live, addr)
					case !errors.As(err, &oom):
						t.Error(err)
					}
				}
			}
			for _, addr := range live {
				if err := own.Free(addr); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	wg.Wait()
	if u := g.Usage(); u.Reserved != dev.taken() {
		t.Errorf("%+v, the driver has given %d", u, dev.taken())
	}
	check(t, g.Close())
	if dev.taken() != 0 {
		t.Errorf("%d bytes are left", dev.taken())
	}
}

// lend makes a revocable block and frees it when it is revoked, or at once.
func lend(t *testing.T, to *tenant.Tenant, size, stream uint64) {
	var once sync.Once
	ready := make(chan uint64, 1)
	free := func() {
		once.Do(func() {
			if err := to.Free(<-ready); err != nil {
				t.Error(err)
			}
		})
	}
	addr, err := to.MallocRevocable(size, stream, free)
	if err != nil {
		return
	}
	ready <- addr
	free()
}

// Two tenants that release each other's cache again and again never wait for one
// another: a million times in turns, and then at the same time.
func TestNoDeadlock(t *testing.T) {
	turns, rounds := 1_000_000, int64(50_000)
	if testing.Short() {
		turns, rounds = 20_000, 5_000
	}
	g := must(tenant.New(sim.New(sim.Config{TotalMemory: 20 * mib}), 20*mib, tenant.Options{}))
	both := [2]*tenant.Tenant{must(g.Add("a", tenant.Terms{})), must(g.Add("b", tenant.Terms{}))}
	for i := range turns {
		own := both[i%2]
		check(t, own.Free(must(own.Malloc(20*mib, 0))))
	}
	trims := func() (sum int64) {
		for _, u := range g.Usage().Tenants {
			sum += u.Trims
		}
		return sum
	}
	if n := trims(); n != int64(turns)-1 {
		t.Errorf("%d of %d turns released the other's cache", n, turns)
	}
	// Both begin a round together.
	var done [2]atomic.Int64
	var wg sync.WaitGroup
	for i, own := range both {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for n := range rounds {
				for done[1-i].Load() < n {
					runtime.Gosched()
				}
				if addr, err := own.Malloc(20*mib, 0); err == nil {
					if err := own.Free(addr); err != nil {
						t.Error(err)
					}
				}
				done[i].Add(1)
			}
		}()
	}
	wg.Wait()
	t.Logf("%d of %d rounds released the other's cache", trims()-int64(turns)+1, rounds)
}
