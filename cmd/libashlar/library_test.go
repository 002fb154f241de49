package main

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/settings"
)

// emptyFront is a front that never holds anything.
type emptyFront struct{ off bool }

func (*emptyFront) open(int, int) outbox        { return emptyBox{} }
func (*emptyFront) fill(int, bool)              {}
func (f *emptyFront) mode(_ int, off bool)      { f.off = off }
func (*emptyFront) read(int) frontState         { return frontState{} }
func (*emptyFront) resetPeaks(int)              {}
func (*emptyFront) resetSums(int)               {}
func (*emptyFront) waiting(int, *alloc.Waiting) {}
func (*emptyFront) unbind(int, int)             {}
func (*emptyFront) named(uint64)                {}
func (*emptyFront) marked(int)                  {}
func (*emptyFront) alone(int) bool              { return false }
func (*emptyFront) mine(int) bool               { return true }
func (*emptyFront) bind(int, uint64, int) error { return nil }

type emptyBox struct{}

func (emptyBox) read([]uint64) int { return 0 }
func (emptyBox) rest() bool        { return false }

// queueFront has blocks that were freed in its outbox.
type queueFront struct {
	emptyFront
	queue []uint64
}

func (f *queueFront) open(int, int) outbox { return queueBox{f} }

type queueBox struct{ *queueFront }

func (b queueBox) rest() bool { return false }

func (b queueBox) read(out []uint64) int {
	f := b.queueFront
	n := copy(out, f.queue)
	f.queue = f.queue[:copy(f.queue, f.queue[n:])]
	return n
}

func environment(vars ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, v := range vars {
			if value, ok := strings.CutPrefix(v, name+"="); ok {
				return value, true
			}
		}
		return "", false
	}
}

// TestNoGarbage: serving memory allocates nothing on Go's heap.
func TestNoGarbage(t *testing.T) {
	f := &queueFront{queue: make([]uint64, 0, 4)}
	l := newLibrary(f, environment("ASHLAR_DRIVER=sim"))
	body := func() {
		for _, size := range []uint64{4096, 3 << 20, 40 << 20} {
			var out answer // as the exported functions have it
			if code := l.malloc(0, size, 1, "", &out); code != codeOK {
				t.Fatal(out.text)
			}
			f.queue = append(f.queue, out.lent.Addr) // goes back with the next request
		}
		var out answer
		l.free(0, 0, "", &out)
		if len(f.queue) != 0 {
			t.Fatal("not all was taken back")
		}
	}
	body()
	if n := testing.AllocsPerRun(1000, body); n != 0 {
		t.Errorf("%v allocations for three requests", n)
	}
}

// TestFailuresLeaveNothing: the garbage of out-of-memory errors does not pile
// up although the collector is off.
func TestFailuresLeaveNothing(t *testing.T) {
	l := newLibrary(&emptyFront{}, environment("ASHLAR_DRIVER=sim", "ASHLAR_SIM_MEMORY=1GiB"))
	fail := func(times int) (heap, system uint64) {
		for range times {
			var out answer
			if code := l.malloc(0, 1100<<20, 0, "", &out); code != codeOOM {
				t.Fatal(code, out.text)
			}
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc, m.HeapSys
	}
	heap0, system0 := fail(100)
	heap, system := fail(2000)
	t.Logf("heap %d before and %d after, of the system %d and %d", heap0, heap, system0, system)
	if heap > heap0+1<<20 || system > system0+4<<20 {
		t.Errorf("the heap grew from %d to %d bytes, of the system from %d to %d", heap0, heap, system0, system)
	}
}

func TestFailures(t *testing.T) {
	l := newLibrary(&emptyFront{}, environment("ASHLAR_DRIVER=sim"))
	dev := sim.New(sim.Config{TotalMemory: 1 << 30})
	l.open = func(int) (driver.Driver, error) { return dev, nil }
	var out answer
	broken := errors.New("the driver is broken")
	dev.FailNth(1, broken)
	if code := l.malloc(0, 1<<20, 0, "", &out); code != codeFailed || !strings.Contains(out.text, broken.Error()) {
		t.Errorf("code %d, text %q", code, out.text)
	}
	out = answer{}
	if code := l.malloc(0, 2<<30, 0, "", &out); code != codeOOM || out.oom == nil {
		t.Errorf("code %d, text %q", code, out.text)
	}
	out = answer{}
	if code := l.malloc(0, 1<<62, 0, "", &out); code != codeOOM || !strings.Contains(out.text, "1EB") {
		t.Errorf("code %d, text %q", code, out.text)
	}
	out = answer{}
	if l.free(0, 4096, "", &out); !strings.Contains(out.text, "invalid device pointer") {
		t.Errorf("text %q", out.text)
	}
	if err := l.setFraction(0, 2); err == nil {
		t.Error("a fraction of 2 was accepted")
	}
}

func TestReadConfig(t *testing.T) {
	for _, tt := range []struct {
		name string
		env  []string
		want string // settings in canonical form
		from string
		err  string
		note string
	}{
		{name: "nothing set", want: "expandable_segments:True"},
		{
			name: "ours", env: []string{"ASHLAR_CONF=front_cache:False,max_split_size_mb:64,history:100,oom_snapshot:/x/%p.pickle", "PYTORCH_CUDA_ALLOC_CONF=garbage"},
			want: "max_split_size_mb:64,expandable_segments:True,front_cache:False,history:100,oom_snapshot:/x/%p.pickle", from: "ASHLAR_CONF",
		},
		{name: "empty", env: []string{"ASHLAR_CONF=", "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:False"}, want: "expandable_segments:True", from: "ASHLAR_CONF"},
		{name: "PyTorch's", env: []string{"PYTORCH_ALLOC_CONF=expandable_segments:False"}, want: "expandable_segments:False", from: "PYTORCH_ALLOC_CONF"},
		{name: "backend", env: []string{"PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync"}, want: "expandable_segments:True", from: settings.Variable, note: "backend:cudaMallocAsync"},
		{name: "later key", env: []string{"PYTORCH_CUDA_ALLOC_CONF=throw_on_cudamalloc_oom:True"}, want: "expandable_segments:True", from: settings.Variable, note: "throw_on_cudamalloc_oom"},
		{name: "pinned", env: []string{"ASHLAR_CONF=pinned_num_register_threads:8"}, want: "expandable_segments:True,pinned_num_register_threads:8", from: "ASHLAR_CONF", note: "pinned_"},
		{
			name: "tiers", env: []string{"ASHLAR_CONF=overflow:64GiB,host_limit:1GiB,tiers:False"},
			want: "expandable_segments:True,tiers:False,overflow:68719476736,host_limit:1073741824", from: "ASHLAR_CONF",
			note: "overflow has no effect beside tiers:False: leave one of them out",
		},
		{
			name: "overflow without expandable segments", env: []string{"ASHLAR_CONF=overflow:1GiB,expandable_segments:False"},
			want: "expandable_segments:False,overflow:1073741824", from: "ASHLAR_CONF", note: "overflow has no effect beside expandable_segments:False",
		},
		{
			name: "overflow beside guarantees", env: []string{"ASHLAR_CONF=overflow:1GiB", "ASHLAR_TENANTS_HOLD=1"},
			want: "expandable_segments:True,overflow:1073741824", from: "ASHLAR_CONF", note: "overflow has no effect beside ASHLAR_TENANTS_HOLD=1",
		},
		{
			name: "as explain proposes", env: []string{"ASHLAR_CONF=garbage_collection_threshold:0.5,roundup_power2_divisions:[256:2,>:4],overflow:8GiB"},
			want: "garbage_collection_threshold:0.5,roundup_power2_divisions:[256:2,>:4],expandable_segments:True,overflow:8589934592", from: "ASHLAR_CONF",
		},
		{name: "pages", env: []string{"ASHLAR_CONF=region_page:20MiB"}, want: "expandable_segments:True,region_page:20971520", from: "ASHLAR_CONF"},
		{name: "odd page", env: []string{"ASHLAR_CONF=region_page:21MiB"}, from: "ASHLAR_CONF", err: `"region_page": "21MiB" is not allowed; allowed: a multiple of 2MiB`},
		{name: "bad overflow", env: []string{"ASHLAR_CONF=overflow:much"}, from: "ASHLAR_CONF", err: `"overflow": "much" is not allowed; allowed: a size of host memory`},
		{name: "unknown", env: []string{"ASHLAR_CONF=frontcache:True"}, from: "ASHLAR_CONF", err: `"frontcache"`},
		{name: "bad value", env: []string{"ASHLAR_CONF=history:many"}, from: "ASHLAR_CONF", err: `"history": "many" is not allowed; allowed: a whole number`},
		{name: "bad value of PyTorch's", env: []string{"ASHLAR_CONF=max_split_size_mb:1"}, from: "ASHLAR_CONF", err: `"max_split_size_mb"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := readConfig(environment(tt.env...))
			if c.variable != tt.from {
				t.Errorf("read from %q", c.variable)
			}
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) || !strings.Contains(err.Error(), tt.from) {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil || c.text() != tt.want {
				t.Errorf("got %q, %v", c.text(), err)
			}
			if notes := strings.Join(c.notes, "; "); !strings.Contains(notes, tt.note) || tt.note == "" && notes != "" {
				t.Errorf("notes %q", notes)
			}
			again := defaults()
			if err := again.read(c.text(), false); err != nil || again.text() != c.text() {
				t.Errorf("its own text reads back as %q, %v", again.text(), err)
			}
		})
	}
}
