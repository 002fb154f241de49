package playground

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestTenants(t *testing.T) {
	lines := split("device total=256MiB limit=100MiB\ntenant serve guarantee=40MiB\ntenant train ceiling=50MiB\nalloc a 30MiB tenant=serve\nalloc b 20MiB tenant=train")
	m := play(t, lines, End).Moment
	if len(m.Tenants) != 2 || m.Tenants[0] != (Tenant{"serve", 30 << 20, 40 << 20, 0}) || m.Tenants[1] != (Tenant{"train", 20 << 20, 0, 50 << 20}) {
		t.Errorf("%+v", m.Tenants)
	}
	if len(m.Segments) != 2 || m.Segments[0].Tenant != "serve" || m.Segments[1].Tenant != "train" || m.ReservedBytes != 50<<20 {
		t.Errorf("%+v", m.Segments)
	}
	for line, want := range map[string]string{
		"alloc c 1MiB":               `no tenant ""`,
		"alloc c 1MiB tenant=nobody": `no tenant "nobody"`,
		"limit 1GiB":                 "limit cannot be used where there are tenants",
		"pool p":                     "pool cannot be used where there are tenants",
		"tenant late":                "tenants come before the first request",
	} {
		_, err := Play(t.Context(), append(slices.Clone(lines), line), End)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "line 6, ") {
			t.Errorf("%q: %v", line, err)
		}
	}
	for _, line := range []string{"tenant x guarantee=1TiB", "tenant serve"} {
		if _, err := Play(t.Context(), split("tenant serve\n"+line), End); err == nil {
			t.Errorf("%q is accepted", line)
		}
	}
	if _, err := Play(t.Context(), split("alloc a 1MiB tenant=q"), End); err == nil || !strings.Contains(err.Error(), `line 1, "alloc a 1MiB tenant=q": there is no tenant "q"`) {
		t.Error(err)
	}
	if _, err := Play(t.Context(), split("alloc a 1MiB\ntenant late"), End); err == nil || !strings.Contains(err.Error(), "before the first request") {
		t.Error(err)
	}
}

// The rule holds whatever is played: nobody gets what is guaranteed to another.
func TestTenantsAtRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(27, 9))
	for range 60 {
		lines := []string{"device total=256MiB limit=120MiB events=manual", "tenant p guarantee=40MiB", "tenant q guarantee=20MiB priority=3", "tenant r ceiling=70MiB"}
		for i := range 40 {
			line := fmt.Sprintf("alloc b%d %dMiB tenant=%s stream=%d", i, 1+r.IntN(30), []string{"p", "q", "r"}[r.IntN(3)], r.IntN(2))
			switch r.IntN(5) {
			case 0:
				line = fmt.Sprintf("free b%d", r.IntN(i+1))
			case 1:
				line = "empty"
			}
			a, err := Play(t.Context(), append(slices.Clone(lines), line), End)
			if err != nil {
				continue // freed before
			}
			lines = append(lines, line)
			var sum uint64
			for _, x := range a.Moment.Tenants {
				sum += max(x.ReservedBytes, x.GuaranteeBytes)
			}
			if sum > 120<<20 || a.Moment.Tenants[2].ReservedBytes > 70<<20 {
				t.Fatalf("after %q: %+v", lines, a.Moment.Tenants)
			}
		}
	}
}
