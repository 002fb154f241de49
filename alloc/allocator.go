package alloc

import (
	"fmt"
	"math"

	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/internal/spin"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/settings/pytorch"
)

// Allocator is the caching allocator of one device. Its methods are safe for
// concurrent use.
type Allocator struct {
	mu     spin.Mutex
	dev    driver.Driver
	device int

	version pytorch.Version
	cfg     settings.Settings
	rules   Rules  // of cfg, and of the release that the allocator follows
	limit   uint64 // cap on reserved bytes
	limited bool
	choosy  bool   // see Allocator.chosen
	refused uint64 // the least reserved total that the limit refused; 0 if none
	armed   bool   // garbage collection can run: a limit and a threshold are set

	blocks           []block // blockID -> record
	spare            blockID // records to reuse
	created          uint64  // the rank of the block made last, in the order ByCreation
	placed           uint64  // where the next segment goes in the order BySegment
	restoredRank     uint64  // below it are the ranks of restored blocks
	startOrder       func(addr uint64) uint32
	askTies          func(tied []Tie, release bool) int
	table            addrTable
	segments         []segment
	spareSegs        []segmentID
	streamPools      []*streamPool // streamPoolID -> stream pool
	spareStreamPools []streamPoolID
	forest           forest

	pools   [numKinds]*pool // the default pair
	private privatePools
	routes  []route

	uses      []streamUses // usesID -> streams
	spareUses []usesID
	queues    []*eventQueue   // ascending by stream
	deferred  []blockID       // freed while a route was active
	queued    int             // events in queues
	waiting   [numKinds]int64 // bytes asked for in freed blocks that other streams use
	lendings  uint64          // see Waiting.Seq

	reserved     uint64
	stats        counters
	history      history
	observer     func(Event)
	explain      func(Decision)
	meta         string
	reclaim      []func() bool
	borrower     Borrower
	recallBuffer []uint64 // for the borrower's blocks
	onOOM        []func(*OutOfMemoryError)
	retry        *oomRetry
	spiller      Spiller
	spilled      bool   // a request was spilled since the last mark
	relief       relief // what the spiller has done for the request that is under way
	served       uint32 // blocks handed out; it may begin again at 0
	mostInUse    uint64 // on the device since the last mark, while there is a spiller
	course       course // likewise

	places    map[uint64]Place // of granules that are not on the device
	elsewhere uint64           // bytes of those
	withheld  uint64           // of these, bytes that no block uses
	moved     int64            // how often granules changed their place
	claimed   uint64           // device memory that is to come behind some of them

	undefined *UndefinedError
	scratch   []blockID
}

// Option changes how New sets an allocator up.
type Option func(*Allocator)

// WithSettings starts the allocator with the given settings instead of
// PyTorch's defaults.
func WithSettings(s settings.Settings) Option {
	return func(a *Allocator) { a.cfg = s }
}

// WithVersion makes the allocator follow the rules of another release of PyTorch
// than [pytorch.Default].
func WithVersion(v pytorch.Version) Option {
	return func(a *Allocator) { a.version, a.rules.Differences = v, DifferencesOf(v) }
}

// WithDevice sets the device number used in messages and snapshots.
func WithDevice(n int) Option {
	return func(a *Allocator) { a.device = n }
}

// WithObserver calls f for every event of the trace, in order. f runs
// under the allocator's lock and must not call the allocator.
func WithObserver(f func(Event)) Option {
	return func(a *Allocator) { a.observer = f }
}

// WithReclaimer calls f when no cached block fits, before new memory is requested;
// if f reports true, the search is repeated (spec 3 step 6). f runs without the
// allocator's lock and may free memory. It is called often and must be cheap:
// expensive work belongs in [WithOOMRetry].
func WithReclaimer(f func() bool) Option {
	return func(a *Allocator) { a.reclaim = append(a.reclaim, f) }
}

// WithOOMObserver calls f for each out-of-memory error before it is returned, when
// the failure is final. f runs without the allocator's lock.
func WithOOMObserver(f func(*OutOfMemoryError)) Option {
	return func(a *Allocator) { a.onOOM = append(a.onOOM, f) }
}

// New returns an allocator that gets its memory from d.
func New(d driver.Driver, opts ...Option) *Allocator {
	a := &Allocator{
		dev:         d,
		cfg:         settings.Default(),
		blocks:      make([]block, 1, 1024), // index 0 is noBlock
		table:       newAddrTable(),
		segments:    make([]segment, 1, 64),
		streamPools: make([]*streamPool, 1, 16),
		uses:        make([]streamUses, 1),
	}
	for k := range a.pools {
		a.pools[k] = &pool{kind: poolKind(k)}
	}
	for _, o := range opts {
		o(a)
	}
	a.deriveRules()
	a.stats.maxSplitSize = int64(a.cfg.MaxSplitSize) // frozen here (spec 9.3)
	if f := a.cfg.PerProcessMemoryFraction; f < 1 {
		a.setFraction(f)
	}
	return a
}

// deriveRules recomputes what follows from the settings and the limit.
func (a *Allocator) deriveRules() {
	unaligned := a.rules.unaligned // blocks keep their sizes
	a.rules = a.rules.Differences.rules(a.cfg)
	a.rules.unaligned = a.rules.unaligned || unaligned
	a.choosy = a.rules.unaligned || a.askTies != nil
	a.armed = a.limited && a.cfg.GarbageCollectionThreshold > 0
}

// Settings returns the settings in force.
func (a *Allocator) Settings() settings.Settings {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.cfg
}

// Rules returns the rules under the settings in force.
func (a *Allocator) Rules() Rules {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.rules
}

// Configure parses a settings string at run time. As in PyTorch some settings
// return to their defaults first, memory already obtained keeps its shape, and
// what was parsed before an error stays in force. The memory fraction of the
// string has no effect on a device that is set up (spec 3.2, 11.2).
func (a *Allocator) Configure(conf string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	cfg, err := a.cfg.Apply(conf)
	a.cfg = cfg
	a.deriveRules()
	return err
}

// Use switches to other settings at run time, all of them as given: nothing
// returns to its default. Memory already obtained keeps its shape, and the
// memory fraction has no effect, as with Configure.
func (a *Allocator) Use(s settings.Settings) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cfg = s
	a.deriveRules()
}

// SetMemoryFraction caps the reserved bytes at a fraction of the device's
// memory; 1 removes the cap, from PyTorch 2.10 on. Lowering it frees nothing
// (spec 3.2).
func (a *Allocator) SetMemoryFraction(f float64) error {
	if !(f >= 0 && f <= 1) {
		return fmt.Errorf("memory fraction %v is outside 0..1", f)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.setFraction(f)
	return nil
}

func (a *Allocator) setFraction(f float64) {
	a.limited = f < 1 || a.rules.WholeIsLimit
	limit := f * float64(a.dev.TotalMemory())
	if a.rules.RoundedLimit {
		limit = math.Round(limit)
	}
	a.limit = uint64(limit)
	a.deriveRules()
}

// SetLimit caps the reserved bytes directly.
func (a *Allocator) SetLimit(bytes uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.limited, a.limit = true, bytes
	a.deriveRules()
}

// Limit returns the cap on reserved bytes, if there is one.
func (a *Allocator) Limit() (bytes uint64, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.limited {
		return 0, false
	}
	return a.limit, true
}

// Undefined returns the first point at which PyTorch itself would have
// crashed or read freed memory, or nil. The allocator goes on soundly from
// there; PyTorch does not (spec 14 item 9).
func (a *Allocator) Undefined() *UndefinedError {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.undefined
}

// maxSplitSet reports whether max_split_size_mb is set; a set value may be huge.
func (a *Allocator) maxSplitSet() bool { return a.cfg.MaxSplitSize != settings.None }
