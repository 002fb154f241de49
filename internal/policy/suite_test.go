package policy

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/sim"
)

const testRegion = 256 << 20

// everyone is what the suite runs over.
var everyone = append(slices.Clone(Names), "async:64MiB:no-internal", "async:max:no-opportunistic:no-internal")

// tester is a *testing.T or a *rapid.T.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func strategy(t tester, name string) *Strategy {
	t.Helper()
	s, err := Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// model is a plain map of what is handed out, beside an allocator.
type model struct {
	t      tester
	a      *Allocator
	device *sim.Device
	live   map[Block]modelBlock
	freed  []Block
}

type modelBlock struct {
	size, addr, given uint64
	at                Place
	streams           []uint64
}

func newModel(t tester, name string, o Options) *model {
	d := sim.New(sim.Config{Endless: true, Events: sim.Manual})
	s := strategy(t, name)
	if s.Fixed && o.Region == nil {
		o.Region = func(Place) uint64 { return testRegion }
	}
	return &model{t: t, a: s.New(d, o), device: d, live: map[Block]modelBlock{}}
}

func (m *model) malloc(size uint64, at Place) (Block, error) {
	m.t.Helper()
	b, err := m.a.Malloc(size, at)
	if err != nil {
		return 0, err
	}
	addr, given, err := m.a.Span(b)
	if err != nil {
		m.t.Fatal(err)
	}
	if _, double := m.live[b]; double {
		m.t.Fatalf("block %#x was handed out twice", b)
	}
	if given < size || addr%256 != 0 || m.a.strategy.Name == "buddy" && given&(given-1) != 0 {
		m.t.Fatalf("a request for %d bytes got %d at %#x", size, given, addr)
	}
	for _, c := range m.live {
		if addr < c.addr+c.given && c.addr < addr+given {
			m.t.Fatalf("[%#x, +%d) overlaps [%#x, +%d)", addr, given, c.addr, c.given)
		}
	}
	m.live[b] = modelBlock{size: size, addr: addr, given: given, at: at}
	return b, nil
}

func (m *model) free(b Block) {
	m.t.Helper()
	if err := m.a.Free(b); err != nil {
		m.t.Fatal(err)
	}
	if len(m.live[b].streams) == 0 { // a block that waits is still nobody else's
		delete(m.live, b)
	}
	m.freed = append(m.freed, b)
}

// compare compares the statistics with the map.
func (m *model) compare() {
	m.t.Helper()
	if err := m.a.Check(); err != nil {
		m.t.Fatal(err)
	}
	var requested, given uint64
	for _, b := range m.live {
		requested, given = requested+b.size, given+b.given
	}
	s := m.a.Stats()
	if s.Requested != requested || s.Given != given || s.Blocks != len(m.live) {
		m.t.Fatalf("%+v, the map has %d blocks, %d requested, %d given", s, len(m.live), requested, given)
	}
	if s.Reserved < given || s.Peak.Reserved < s.Peak.Given || s.Peak.Given < s.Peak.Requested {
		m.t.Fatalf("more is handed out than reserved: %+v", s)
	}
	// The device rounds the sizes that it is asked for: BFC's regions, and the bins.
	odd := m.a.strategy.Name == "binning" || strings.HasPrefix(m.a.strategy.Name, "bfc")
	if held := m.device.Held(); s.Reserved != held && (!odd || s.Reserved > held) {
		m.t.Fatalf("%d bytes are reserved, the device gave %d", s.Reserved, m.device.Held())
	}
}

func (m *model) some(t *rapid.T) Block {
	all := slices.Sorted(maps.Keys(m.live))
	for range all {
		b := rapid.SampledFrom(all).Draw(t, "block")
		if m.live[b].streams == nil {
			return b
		}
	}
	return 0
}

func TestProperties(t *testing.T) {
	for _, name := range everyone {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				o := Options{}
				if name != "bfc" && rapid.Bool().Draw(t, "limited") {
					o.Limit = 200 << 20
				}
				m := newModel(t, name, o)
				sizes := rapid.OneOf(rapid.Uint64Range(0, 4096), rapid.Uint64Range(1, 2<<20), rapid.Uint64Range(1<<20, 40<<20))
				t.Repeat(map[string]func(*rapid.T){
					"malloc": func(t *rapid.T) {
						at := Place{rapid.Uint64Range(0, 2).Draw(t, "stream"), rapid.Uint64Range(0, 1).Draw(t, "pool")}
						before := m.a.Stats()
						if _, err := m.malloc(sizes.Draw(t, "size"), at); err != nil {
							if !errors.As(err, new(*OutOfMemoryError)) || o.Limit == 0 && name != "bfc" {
								t.Fatal(err)
							}
							if s := m.a.Stats(); s.Given != before.Given || s.Reserved > before.Reserved {
								t.Fatalf("a refusal changed %+v to %+v", before, s)
							}
						}
						if s := m.a.Stats(); o.Limit > 0 && s.Reserved > o.Limit {
							t.Fatalf("%d bytes are reserved, the limit is %d", s.Reserved, o.Limit)
						}
					},
					"free": func(t *rapid.T) {
						if b := m.some(t); b != 0 || len(m.live) > 0 && m.live[b].streams == nil {
							if _, ok := m.live[b]; ok {
								m.free(b)
							}
						}
					},
					"free later": func(t *rapid.T) {
						b := m.some(t)
						if l, ok := m.live[b]; ok && l.streams == nil {
							l.streams = []uint64{7, 8}[:rapid.IntRange(1, 2).Draw(t, "streams")]
							m.live[b] = l
							for _, s := range l.streams {
								if err := m.a.RecordStream(b, s); err != nil {
									t.Fatal(err)
								}
							}
							m.free(b)
						}
					},
					"complete": func(t *rapid.T) {
						m.device.CompleteAll()
						if err := m.a.poll(); err != nil {
							t.Fatal(err)
						}
						maps.DeleteFunc(m.live, func(_ Block, b modelBlock) bool { return b.streams != nil })
					},
					"free twice": func(t *rapid.T) {
						if len(m.freed) == 0 {
							return
						}
						b := rapid.SampledFrom(m.freed).Draw(t, "freed")
						if err := m.a.Free(b); !errors.Is(err, ErrNotAllocated) {
							t.Fatalf("a second free of %#x: %v", b, err)
						}
						if err := m.a.RecordStream(b, 1); !errors.Is(err, ErrNotAllocated) {
							t.Fatalf("record_stream of a freed block: %v", err)
						}
					},
					"trim": func(t *rapid.T) {
						if len(m.a.pending) > 0 {
							return
						}
						if err := m.a.Trim(); err != nil {
							t.Fatal(err)
						}
						before := m.a.Stats().Reserved
						if err := m.a.Trim(); err != nil || m.a.Stats().Reserved != before {
							t.Fatalf("a second trim gave back %d more bytes: %v", before-m.a.Stats().Reserved, err)
						}
					},
					"synchronize": func(t *rapid.T) {
						if err := m.a.Synchronize(); err != nil {
							t.Fatal(err)
						}
					},
					"": func(t *rapid.T) {
						if len(m.a.pending) > 0 { // a trim of the driver's may have ended them
							m.device.CompleteAll()
							if err := m.a.poll(); err != nil {
								t.Fatal(err)
							}
							maps.DeleteFunc(m.live, func(_ Block, b modelBlock) bool { return b.streams != nil })
						}
						m.compare()
					},
				})
			})
		})
	}
}

// With everything free, a trim leaves nothing reserved.
func TestTrimOfAnEmptyHeap(t *testing.T) {
	for _, name := range everyone {
		m := newModel(t, name, Options{})
		var all []Block
		for i := range uint64(300) {
			b, err := m.malloc(1+i*i*37, Place{i % 3, i % 2})
			if err != nil {
				t.Fatal(name, err)
			}
			all = append(all, b)
		}
		for i := range all {
			m.free(all[(i*7)%len(all)])
		}
		if err := m.a.Trim(); err != nil {
			t.Fatal(err)
		}
		m.compare()
		if s := m.a.Stats(); s.Reserved != 0 || m.device.Held() != 0 || s.Blocks != 0 {
			t.Errorf("%s: %+v, the device gave %d", name, s, m.device.Held())
		}
	}
}

// The driver fails at every call in turn: the allocator says so, loses nothing and
// goes on.
func TestDriverFails(t *testing.T) {
	broken := errors.New("the driver is broken")
	for _, name := range everyone {
		for _, fault := range []error{broken, driver.ErrOutOfMemory} {
			for n := 1; ; n++ {
				m := newModel(t, name, Options{})
				m.device.FailNth(n, fault)
				failed := false
				note := func(err error) {
					if err != nil {
						failed = true
						if !errors.Is(err, fault) {
							t.Fatalf("%s, call %d: %v", name, n, err)
						}
					}
				}
				var all []Block
				for i := range uint64(24) {
					b, err := m.malloc(1+i*i*i*700, Place{Stream: i % 2})
					note(err)
					if err == nil {
						all = append(all, b)
					}
				}
				for i, b := range all {
					if i%3 == 0 {
						note(m.a.RecordStream(b, 9))
					}
					err := m.a.Free(b)
					if note(err); err != nil {
						if err = m.a.Free(b); err != nil {
							t.Fatalf("%s, call %d: the second try: %v", name, n, err)
						}
					}
					if i%3 != 0 {
						delete(m.live, b)
					}
				}
				m.device.CompleteAll()
				note(m.a.Synchronize())
				note(m.a.Trim())
				reached := m.device.Calls().Total() >= n
				m.device.Heal()
				if err := m.a.Trim(); err != nil {
					t.Fatal(err)
				}
				clear(m.live)
				m.compare()
				if s := m.a.Stats(); s.Reserved != 0 || m.device.Held() != 0 {
					t.Fatalf("%s, call %d failed (%v): %d bytes are lost, the device gave %d", name, n, fault, s.Reserved, m.device.Held())
				}
				if !reached {
					break
				}
				_ = failed
			}
		}
	}
}
