package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc/tenant"
)

// A trainer that grows until it fails takes nothing from the streams of a server.
func TestTenants(t *testing.T) {
	s := &script{t: t}
	s.address(nil, "malloc 0 %d 0 0", 20<<20) // before there are tenants
	s.expect("ok", "tenant serve 0 400 0 10")
	s.expect("ok", "tenantbind serve 0 7")
	s.expect("ok", "tenantbind default 0 0")
	for i := range 30 { // 20 + 580 MiB, and 400 for the server
		if i < 29 {
			s.address(nil, "malloc %d %d 3 0", 100+i, 20<<20)
		} else {
			s.contains([]string{"oom CUDA out of memory", "Tenant default has 600.00 MiB reserved, 0 B guaranteed", "Ashlar: "}, "malloc 99 %d 3 0", 20<<20)
		}
	}
	for i := range 20 {
		s.address(nil, "malloc %d %d 7 0", 200+i, 20<<20)
	}
	s.contains([]string{"oom", "Tenant serve has 400.00 MiB reserved", "Above their guarantee: default 600.00 MiB"}, "malloc 99 1 7 0")
	s.say(func(got string) {
		u := decode[tenant.Usage](t, got)
		if u.Limit != 1000<<20 || u.Reserved != 1000<<20 || u.Tenants[1].Name != "serve" || u.Tenants[1].Reserved != 400<<20 {
			t.Errorf("%+v", u)
		}
	}, "tenantstats - 0")
	s.expect("failed tenant serve has 400.00 MiB in use: free its blocks and close its pools first", "tenantdelete serve 0")
	// A block goes back to its tenant, whoever frees it; a stream of another one may use it.
	s.expect("ok", "record 200 3")
	for i := range 20 {
		s.expect("ok", "free %d", 200+i)
	}
	s.expect("ok", "empty")
	s.contains([]string{`"reserved_bytes":{"all":{"allocated":`, `"current":0,`}, "tenantstats serve 0")
	s.expect("ok", "tenantresize serve 0 100 200 5")
	s.contains([]string{"failed", "cannot be guaranteed now", "default 600.00 MiB"}, "tenantresize serve 0 401 0 5")
	s.expect("ok", "tenantdelete serve 0")
	s.address(nil, "malloc 99 1 7 0")
	s.contains([]string{`"name":"default"`, `"reserved_bytes":631242752`}, "tenantstats - 0")
	if said := s.run(memoryVariable + "=1000MiB"); said != "" {
		t.Error(said)
	}
}

// The statistics of a device are the sums over its tenants, front caches included.
func TestTenantStats(t *testing.T) {
	s := &script{t: t}
	for i, name := range []string{"a", "b", "c"} {
		s.expect("ok", "tenant %s 0 10 0 0", name)
		s.expect("ok", "tenantbind %s 0 %d", name, i+1)
	}
	for i := range 400 {
		s.address(nil, "malloc %d %d %d 0", i, 1+i*i*7%(3<<20), i%4)
		if i%3 == 2 {
			s.expect("ok", "free %d", i-1)
		}
	}
	sum := map[string]int64{}
	for _, name := range []string{"default", "a", "b", "c"} {
		s.say(func(got string) {
			for key, n := range flatten("", decode[any](t, got), map[string]int64{}) {
				sum[key] += n
			}
		}, "tenantstats %s 0", name)
	}
	s.say(func(got string) {
		all := flatten("", decode[any](t, got), map[string]int64{})
		all["max_split_size"], sum["max_split_size"] = 0, 0
		if len(all) < 100 || all["allocation.all.current"] != 400-133 || fmt.Sprint(all) != fmt.Sprint(sum) {
			t.Errorf("%v\nthe tenants: %v", all, sum)
		}
	}, "stats 0")
	s.say(func(got string) {
		var f struct{ Segments []struct{ Address uint64 } }
		if err := json.Unmarshal([]byte(got), &f); err != nil || len(f.Segments) < 8 {
			t.Errorf("%v: %d segments", err, len(f.Segments))
		}
		for i := 1; i < len(f.Segments); i++ {
			if f.Segments[i-1].Address >= f.Segments[i].Address {
				t.Error("segments are out of order")
			}
		}
	}, "snapshot 0")
	s.expect("ok", "peaks 0")
	// Pools are of all tenants.
	s.expect("ok", "begin 0 5 0 2")
	s.address(nil, "malloc 900 1000 2 0")
	s.expect("ok", "end 0 5 0")
	s.expect("ok", "free 900")
	s.expect("ok", "release 0 5 0")
	if said := s.run(memoryVariable + "=1GiB"); said != "" {
		t.Error(said)
	}
}

// Tenants of the environment are there with their device.
func TestTenantsOfTheEnvironment(t *testing.T) {
	s := &script{t: t}
	s.say(func(got string) {
		u := decode[tenant.Usage](t, got)
		if len(u.Tenants) != 2 || u.Tenants[0].Ceiling != 500<<20 || u.Tenants[1].Guarantee != 300<<20 || u.Tenants[1].Priority != 10 || u.Limit != 1<<30 {
			t.Errorf("%+v", u)
		}
	}, "tenantstats - 0")
	s.contains([]string{"oom", "would exceed its ceiling"}, "malloc 0 %d 0 0", 600<<20)
	s.run(memoryVariable+"=1GiB", tenantsVariable+"=serve:guarantee=300MiB,priority=10;default:ceiling=500MiB")

	for text, want := range map[string]string{
		"serve:guarante=1GiB": "is no term", ":guarantee=1GiB": "has no name", "a:guarantee=x": "tenant a", "a:priority=x": "tenant a",
	} {
		if _, err := parseTenants(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	s = &script{t: t}
	s.contains([]string{"failed", tenantsVariable, "is no term"}, "malloc 0 1 0 0")
	s.run(tenantsVariable + "=a:b=1")
	s = &script{t: t}
	s.contains([]string{"failed", "cannot be guaranteed now"}, "malloc 0 1 0 0")
	s.run(memoryVariable+"=1GiB", tenantsVariable+"=a:guarantee=2GiB")
}
