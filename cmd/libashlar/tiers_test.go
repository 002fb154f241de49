package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/ashlar-mem/ashlar/snapshot"
)

const mebi = 1 << 20

// A region moves to the host and back, the front holds nothing of it, and what others have
// stays where it is.
func TestRegion(t *testing.T) {
	s := &script{t: t}
	s.address(nil, "malloc 0 %d 0 0", 30*mebi)
	s.expect("ok", "fill 0 %d 9", 30*mebi)
	s.expect("ok", "enter actor 0")
	for i := 1; i <= 5; i++ {
		s.address(nil, "malloc %d %d 0 0", i, 20*mebi)
		s.expect("ok", "fill %d %d %d", i, 20*mebi, i)
	}
	s.address(nil, "malloc 6 4096 0 0")
	s.expect("ok", "fill 6 4096 6")
	s.expect("ok", "leave - 0")
	s.expect("failed this thread is in no region", "leave - 0")
	s.contains([]string{`"freed_bytes":127926272`, `"out_bytes":127926272`, `"private_bytes":0`}, "park actor 0 1")
	s.contains([]string{`"host_bytes":127926272`, `"current":41943040`}, "stats 0")
	s.expect("yes", "holds 3 %d 3", 20*mebi)
	// Freed, a block of the host's memory goes to the engine at once, and to nobody else.
	s.expect("ok", "free 5")
	s.expect("ok", "enter actor 0")
	s.address(nil, "malloc 5 %d 0 0", 20*mebi)
	s.expect("ok", "fill 5 %d 5", 20*mebi)
	s.expect("ok", "leave - 0")
	s.contains([]string{`"in_bytes":`}, "restore actor 0")
	s.contains([]string{`"host_bytes":0`}, "stats 0")
	for i := 1; i <= 5; i++ {
		s.expect("yes", "holds %d %d %d", i, 20*mebi, i)
	}
	s.expect("yes", "holds 6 4096 6")
	s.expect("yes", "holds 0 %d 9", 30*mebi)
	s.contains([]string{`"regions":[{"name":"actor"`, `"dropped":false`}, "tiers - 0")
	s.contains([]string{"failed tenant region:actor has", "in use"}, "regiondelete actor 0")
	for i := 1; i <= 6; i++ {
		s.expect("ok", "free %d", i)
	}
	s.expect("ok", "regiondelete actor 0")
	s.expect("failed device 0 has no region \"actor\"", "park actor 0 1")
	if said := s.run(onCUDA(t)...); said != "" {
		t.Error(said)
	}
}

// While a graph is captured nothing moves, and the memory of its pool never does.
func TestNoMoveDuringCapture(t *testing.T) {
	s := &script{t: t}
	s.expect("ok", "enter a 0")
	s.address(nil, "malloc 0 %d 0 0", 20*mebi)
	s.expect("ok", "leave - 0")
	s.expect("ok", "begin 0 7 7 3")
	s.address(nil, "malloc 1 %d 3 0", 20*mebi)
	for _, line := range []string{"park a 0 1", "parkblock 1 0", "park a 0 0"} {
		s.contains([]string{"failed memory cannot be moved: the stream is being captured into a CUDA graph; end the capture first"}, "%s", line)
	}
	s.contains([]string{`"capturing":1`}, "tiers - 0")
	s.expect("0", "dropped 0 0")
	s.expect("ok", "end 0 7 7")
	s.contains([]string{`"private_bytes":20971520`, `"out_bytes":0`}, "parkblock 1 0")
	s.contains([]string{`"out_bytes":125829120`}, "park a 0 1")
	s.contains([]string{`"capturing":0`, `"captures":1`}, "tiers - 0")
	if said := s.run(onCUDA(t)...); said != "" {
		t.Error(said)
	}
}

// A region whose pages do not fit says so, and no limit where there is none.
func TestRegionWithoutRoom(t *testing.T) {
	for _, tt := range []struct {
		name         string
		env          []string
		fraction     int // millionths
		outside      int // MiB
		inside       []int
		said, unsaid string
	}{
		{
			name: "pages", outside: 60, inside: []int{20},
			said: "pages of region actor are of 120.00 MiB. With ASHLAR_CONF=region_page:20MiB they are smaller, and the request would fit.",
		},
		{name: "tail of a page", env: []string{"region_page:60MiB"}, outside: 60, inside: []int{50, 40}, said: "are of 60.00 MiB. With ASHLAR_CONF=region_page:20MiB"},
		{name: "a limit's rest", fraction: 500_000, outside: 60, inside: []int{20}, said: "above the limit of 80.00 MiB. Above their guarantee: default 60.00 MiB. Ashlar: pages of region"},
		{name: "above a limit", fraction: 500_000, outside: 60, inside: []int{30}, said: "above the limit of 80.00 MiB", unsaid: "region_page"},
		{name: "nothing fits", outside: 120, inside: []int{50}, said: "120.00 MiB more were refused: cuMemCreate: out of memory", unsaid: "region_page"},
		{name: "small pages", env: []string{"region_page:20MiB"}, outside: 140, inside: []int{30}, said: "40.00 MiB more were refused: cuMemCreate: out of memory", unsaid: "region_page"},
		{name: "small tensors", outside: 160, inside: []int{1}, said: "2.00 MiB more were refused: cuMemCreate: out of memory", unsaid: "region_page"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &script{t: t}
			for i := range tt.outside / 20 {
				s.address(nil, "malloc %d %d 0 0", i, 20*mebi)
			}
			if tt.fraction > 0 {
				s.expect("ok", "fraction %d 0", tt.fraction)
			}
			s.expect("ok", "enter actor 0")
			for i, mib := range tt.inside {
				if i < len(tt.inside)-1 {
					s.address(nil, "malloc %d %d 0 0", 20+i, mib*mebi)
					continue
				}
				s.say(func(got string) {
					if !strings.HasPrefix(got, "oom ") || !strings.Contains(got, tt.said) || strings.Contains(got, "4294967296") || strings.Contains(got, "allows") ||
						tt.unsaid != "" && strings.Contains(got, tt.unsaid) {
						t.Errorf("%s\nwant %s", got, tt.said)
					}
				}, "malloc 30 %d 0 0", mib*mebi-mebi/2)
			}
			s.run(onCUDA(t, "FAKECUDA_MEMORY=167772160", "FAKECUDA_CONTEXT=0", confVariable+"="+strings.Join(tt.env, ","))...)
		})
	}
}

// A tenant may have the name of a region where there can be none.
func TestTenantNamedAsRegion(t *testing.T) {
	s := &script{t: t}
	s.expect("ok", "tenant region:a 0 10 0 0")
	s.expect("ok", "tenantbind region:a 0 7")
	s.contains([]string{"oom CUDA out of memory"}, "malloc 0 %d 7 0", 200*mebi)
	s.run(onCUDA(t, "FAKECUDA_MEMORY=167772160", "FAKECUDA_CONTEXT=0", confVariable+"=tiers:False")...)
}

// The first request that the host serves tells of it, once.
func TestOverflowNote(t *testing.T) {
	s := &script{t: t}
	for i := range 6 {
		s.address(nil, "malloc %d %d 0 0", i, 20*mebi)
	}
	s.contains([]string{`"host_bytes":41943040`, `"overflows":2`}, "stats 0")
	s.expect("ok", "configure overflow:0")
	s.contains([]string{"oom CUDA out of memory"}, "malloc 9 %d 0 0", 20*mebi)
	s.contains([]string{`"overflow_bytes":0`}, "settings")
	said := s.run(onCUDA(t, "FAKECUDA_MEMORY=83886080", "FAKECUDA_CONTEXT=0", confVariable+"=overflow:40MiB")...)
	if strings.Count(said, "\n") != 1 || !strings.HasPrefix(said, "ashlar: device 0 is full: 20.00 MiB is in the host's memory") {
		t.Errorf("standard error: %q", said)
	}
}

// A snapshot says how much of what it lists is on the host, and a reader passes it on.
func TestSnapshotOfOverflow(t *testing.T) {
	dir := t.TempDir()
	before, after := filepath.Join(dir, "before"), filepath.Join(dir, "after")
	s := &script{t: t}
	for i := range 6 {
		s.address(nil, "malloc %d %d 0 0", i, 20*mebi)
		if i == 3 {
			s.expect("ok", "write %s", before)
		}
	}
	s.expect("ok", "write %s", after)
	s.run(onCUDA(t, "FAKECUDA_MEMORY=83886080", "FAKECUDA_CONTEXT=0", confVariable+"=overflow:40MiB")...)
	for path, want := range map[string]string{before: "", after: "40.00 MiB of what this file lists as the device's memory lies in the host's"} {
		f, err := snapshot.Open(context.Background(), path, snapshot.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if said := strings.Join(f.Warnings, "\n"); !strings.HasPrefix(said, want) || want == "" && said != "" {
			t.Errorf("%s: %q", filepath.Base(path), said)
		}
	}
}

// A region's overflow is not told of after that of the device; another device tells of its own.
func TestOneNoteForADevice(t *testing.T) {
	s := &script{t: t}
	for device := range 2 {
		for i := range 2 {
			if i == 1 {
				s.expect("ok", "enter actor %d", device)
			}
			for j := range 3 {
				s.address(nil, "malloc %d %d 0 %d", 10*device+5*i+j, 20*mebi, device)
			}
		}
		s.expect("ok", "leave - %d", device)
		s.contains([]string{`"overflows":4`}, "stats %d", device)
	}
	said := s.run(onCUDA(t, "FAKECUDA_MEMORY=41943040", "FAKECUDA_CONTEXT=0", confVariable+"=overflow:80MiB,region_page:20MiB")...)
	if strings.Count(said, "\n") != 2 || strings.Count(said, "ashlar: device 0 is full") != 1 || strings.Count(said, "ashlar: device 1 is full") != 1 {
		t.Errorf("standard error: %q", said)
	}
}

// A request that fails although overflow is on says why, and what limits it.
func TestOverflowDidNotHelp(t *testing.T) {
	for _, tt := range []struct {
		name, conf, said string
		env              []string
		overflows, asked int
		before           []string
	}{
		{name: "used up", conf: "overflow:40MiB", overflows: 1, said: "Overflow does not suffice: of the 40.00 MiB that overflow allows, 20.00 MiB are in use, and the request takes 40.00 MiB."},
		{name: "host_limit", conf: "overflow:400MiB,host_limit:40MiB", overflows: 1, said: "of the 40.00 MiB that host_limit allows, 20.00 MiB are in use, and the request takes 40.00 MiB."},
		{name: "host", conf: "overflow:400MiB", env: []string{"FAKECUDA_HOST_MEMORY=52428800"}, overflows: 1, said: "the host has not given the 40.00 MiB that the request takes, beside 20.00 MiB in use."},
		{name: "no addresses", conf: "overflow:400MiB", asked: 120, said: "Overflow serves no request above 100.00 MiB, 9/8 of the device in whole pages"},
		{name: "no tiers", conf: "overflow:400MiB,tiers:False", said: "Overflow has no effect beside tiers:False: leave one of them out."},
		{name: "plain segments", conf: "overflow:400MiB,expandable_segments:False", said: "Overflow has no effect beside expandable_segments:False"},
		{name: "guarantees", conf: "overflow:400MiB", env: []string{holdVariable + "=1"}, said: "Overflow has no effect beside " + holdVariable + "=1"},
		{name: "off at run time", conf: "overflow:400MiB", before: []string{"configure tiers:False"}, said: "Overflow has no effect beside tiers:False"},
		{name: "on at run time", conf: "overflow:400MiB,tiers:False", before: []string{"configure tiers:True"}, said: "tiers were off when it was first used"},
		{name: "a graph's pool", conf: "overflow:400MiB", before: []string{"begin 0 7 7 0"}, said: "Overflow does not serve the pools of CUDA graphs."},
		{name: "capture elsewhere", conf: "overflow:400MiB", before: []string{"begin 0 7 7 3"}, said: "Overflow serves nothing while a CUDA graph is captured."},
		{name: "off", conf: "tiers:False"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &script{t: t}
			for i := range 4 + tt.overflows {
				s.address(nil, "malloc %d %d 0 0", i, 20*mebi)
			}
			for _, line := range tt.before {
				s.expect("ok", "%s", line)
			}
			s.say(func(got string) {
				if !strings.HasPrefix(got, "oom ") || !strings.Contains(got, tt.said) || tt.said == "" && strings.Contains(got, "verflow") {
					t.Errorf("%s\nwant %s", got, tt.said)
				}
			}, "malloc 30 %d 0 0", cmp.Or(tt.asked, 30)*mebi)
			s.run(onCUDA(t, append(tt.env, "FAKECUDA_MEMORY=83886080", "FAKECUDA_CONTEXT=0", confVariable+"="+tt.conf)...)...)
		})
	}
}

// The host's memory is limited by one thing.
func TestMostHost(t *testing.T) {
	for own, want := range map[ownSettings]string{
		{}: "50 are half of what the host had (host_limit sets another limit)", {overflow: 40}: "50 are half of what the host had (host_limit sets another limit)",
		{overflow: 60}: "60 overflow allows", {overflow: 160}: "100 the host had", {hostLimit: 30, overflow: 60}: "30 host_limit allows", {hostLimit: 130}: "100 the host had",
	} {
		if bytes, by := own.mostHost(100); fmt.Sprint(bytes, " ", by) != want {
			t.Errorf("%+v: %d %s, want %s", own, bytes, by, want)
		}
	}
}

// What overflowed of a block comes home before it is used, if this thread alone has the device and no graph is captured.
func TestFetch(t *testing.T) {
	s := &script{t: t}
	s.address(nil, "malloc 0 %d 0 0", 20*mebi)
	s.expect("ok", "fill 0 %d 7", 20*mebi)
	s.expect("ok", "cold 0 0")
	s.contains([]string{`"in_bytes":0`}, "fetch 0 0")
	s.contains([]string{`"out_bytes":0`}, "step - 0")
	for i := 1; i <= 4; i++ {
		s.address(nil, "malloc %d %d 0 0", i, 20*mebi)
		s.expect("ok", "fill %d %d %d", i, 20*mebi, i)
	}
	s.contains([]string{`"host_bytes":20971520`, `"moves":1`}, "stats 0")
	s.contains([]string{`"in_bytes":0`}, "fetch 0 0") // no room
	s.expect("ok", "free 4")
	s.expect("ok", "begin 0 7 7 3")
	s.contains([]string{`"in_bytes":0`}, "fetch 0 0")
	s.expect("ok", "end 0 7 7")
	s.contains([]string{`"in_bytes":0`}, "fetch 0 0") // somebody may have registered what the graph uses
	s.expect("ok", "registered 1")
	s.contains([]string{`"in_bytes":0`}, "fetch 0 0")
	s.expect("ok", "registered 0")
	s.contains([]string{`"in_bytes":0`}, "fetch 9 0") // nobody's
	s.contains([]string{"failed there is no block at"}, "cold 9 0")
	s.expect("ok", "guess 9 0 1")
	s.expect("no", "inside - 0")
	s.contains([]string{`"in_bytes":20971520`, `"out_bytes":0`}, "fetch 0 0")
	s.contains([]string{`"host_bytes":0`, `"host_kept_bytes":20971520`, `"moves":2`}, "stats 0")
	s.contains([]string{`"host_used_bytes":0`}, "tiers - 0")
	s.address(nil, "malloc 4 %d 0 0", 20*mebi)
	s.contains([]string{`"host_bytes":20971520`, `"moves":3`}, "stats 0") // the same goes again
	s.expect("yes", "holds 0 %d 7", 20*mebi)
	for i := 1; i <= 3; i++ {
		s.expect("yes", "holds %d %d %d", i, 20*mebi, i)
	}
	s.run(onCUDA(t, "FAKECUDA_MEMORY=83886080", "FAKECUDA_CONTEXT=0", confVariable+"=overflow:20MiB")...)
}

// Threads that allocate do not disturb moves, nor moves them.
func TestMovesBesideThreads(t *testing.T) {
	for _, env := range [][]string{onCUDA(t), onCUDA(t, "FAKECUDA_MEMORY=268435456", "FAKECUDA_CONTEXT=0", confVariable+"=overflow:128MiB")} {
		if out, said := run(t, "moves.cpp", "", env...); out != "" || strings.Count(said, "\n") > 2 {
			t.Errorf("%s%s", out, said)
		}
	}
}

// Every call of the driver fails, once or for ever, while memory moves: the process lives
// on, and after the fault each byte is there.
func TestMoveFaults(t *testing.T) {
	short.Skip(t)
	t.Parallel()
	env := onCUDA(t)
	const blocks = 2
	told := regexp.MustCompile(`^(ok|yes|\d+|\{.*\}|(oom|failed) .*)$`)
	for _, call := range []string{
		"cuMemCreate", "cuMemMap", "cuMemUnmap", "cuMemSetAccess", "cuMemRelease", "cuMemAddressReserve", "cuMemcpyAsync", "cuCtxSynchronize",
		"cuStreamSynchronize", "cuStreamCreate", "cuStreamIsCapturing", "cuMemGetInfo_v2",
	} {
		for _, n := range []int{1, 3, 7} {
			for _, code := range []int{2, 999} {
				s := &script{t: t}
				s.expect("ok", "enter a 0")
				for i := range blocks {
					s.say(func(string) {}, "malloc %d %d 0 0", i, 20*mebi)
				}
				s.say(func(string) {}, "leave - 0")
				var failed bool
				for i := range blocks {
					s.say(func(got string) { failed = failed || got != "ok" }, "fill %d %d %d", i, 20*mebi, i+1)
				}
				for _, line := range []string{"park a 0 1", "restore a 0", "park a 0 1", "step - 0", "restore a 0", "restore a 0", "restore a 0"} {
					s.say(func(got string) {
						if !told.MatchString(got) {
							t.Errorf("%s %d fails with %d: %s", call, n, code, got)
						}
					}, "%s", line)
				}
				for i := range blocks {
					s.say(func(got string) {
						if !failed && got != "yes" {
							t.Errorf("%s %d fails with %d: bytes of block %d are gone", call, n, code, i)
						}
					}, "holds %d %d %d", i, 20*mebi, i+1)
				}
				s.run(append(env, fmt.Sprintf("FAKECUDA_FAIL=%s:%d:%d", call, n+8, code))...)
			}
		}
	}
}
