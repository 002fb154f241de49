package script

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/alloc/tenant"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/settings/pytorch"
)

// Runner holds the device, the allocator and the names of a running script.
type Runner struct {
	Device    *sim.Device
	Allocator *alloc.Allocator
	// Options are given to the allocators that the device command makes from
	// now on.
	Options []alloc.Option
	// Refused is the last refusal of a tenant's request; nil if there was none.
	Refused *tenant.OutOfMemoryError

	blocks   map[string]uint64
	pools    map[string]*alloc.MemPool
	captures map[string]*alloc.Capture
	saved    map[string]*alloc.Checkpoint
	made     []route // every pool and capture, also those whose name was taken over
	segments []named
	count    int
	out      strings.Builder
	message  string
	plain    plainStats
	seats    seats
}

// route is what a pool and a capture have in common.
type route interface {
	End() error
}

// named is a segment that has a letter.
type named struct {
	name       string
	base, size uint64
	expandable bool
}

// ErrCommand marks a line that is not a command of the language.
var ErrCommand = errors.New("bad command")

// New returns a runner with a device of 80 GiB and default settings.
func New() *Runner {
	r := &Runner{}
	if err := r.device(nil); err != nil {
		panic(err) // the defaults are valid
	}
	return r
}

// Run runs one command and returns what happened. Errors of the allocator are
// part of the answer; an error is returned only for a line that is no command.
func (r *Runner) Run(line string) (string, error) {
	r.out.Reset()
	words := strings.Fields(line)
	if len(words) == 0 {
		return "", nil
	}
	cmd, ok := commands[words[0]]
	if !ok {
		return "", fmt.Errorf("%w: %q", ErrCommand, words[0])
	}
	if len(words)-1 < cmd.args {
		return "", fmt.Errorf("%w: %q needs %d arguments", ErrCommand, words[0], cmd.args)
	}
	if err := cmd.run(r, words[1:]); err != nil {
		return "", err
	}
	return r.out.String(), nil
}

var commands = map[string]struct {
	args int
	run  func(*Runner, []string) error
}{
	"device": {0, (*Runner).device}, "alloc": {2, (*Runner).alloc}, "free": {1, (*Runner).free},
	"record": {2, (*Runner).record}, "empty": {0, (*Runner).empty}, "set": {0, (*Runner).set},
	"limit": {1, (*Runner).limit}, "fraction": {1, (*Runner).fraction},
	"pool": {1, (*Runner).pool}, "begin": {1, (*Runner).begin}, "end": {1, (*Runner).endPool}, "close": {1, (*Runner).close},
	"capture": {2, (*Runner).capture}, "endcapture": {1, (*Runner).endCapture}, "release": {1, (*Runner).release},
	"checkpoint": {2, (*Runner).checkpoint}, "restore": {1, (*Runner).restore},
	"tenant": {1, (*Runner).tenant}, "complete": {1, (*Runner).complete}, "fail": {2, (*Runner).fail},
	"stats": {1, (*Runner).stats}, "blocks": {0, (*Runner).listBlocks}, "message": {0, (*Runner).lastMessage},
}

func (r *Runner) say(format string, args ...any) { fmt.Fprintf(&r.out, format+"\n", args...) }

var hexAddress = regexp.MustCompile("0x[0-9a-f]{8,}")

// answer prints an error of the allocator, with addresses as in events.
func (r *Runner) answer(err error) {
	var oom *alloc.OutOfMemoryError
	switch {
	case errors.As(err, &oom):
		r.message = oom.Error()
		if oom.TooLarge {
			r.say("error: %v", err)
		}
	case err != nil:
		r.say("error: %s", hexAddress.ReplaceAllStringFunc(err.Error(), func(hex string) string {
			addr, _ := strconv.ParseUint(hex, 0, 64)
			return r.where(addr)
		}))
	}
}

// option finds key=value among the words.
func option(words []string, key string) (string, bool) {
	for _, w := range words {
		if v, ok := strings.CutPrefix(w, key+"="); ok {
			return v, true
		}
	}
	return "", false
}

func number(s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 0, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %q is not a number", ErrCommand, s)
	}
	return n, nil
}

// size reads a number of bytes, also with a unit.
func size(s string) (uint64, error) {
	n, err := units.Parse(s)
	if err == nil {
		return n, nil
	}
	if n, hex := number(s); hex == nil {
		return n, nil
	}
	return 0, fmt.Errorf("%w: %w", ErrCommand, err)
}

func numberOption(words []string, key string) (uint64, error) {
	if v, ok := option(words, key); ok {
		return number(v)
	}
	return 0, nil
}

func (r *Runner) device(words []string) error {
	cfg := sim.Config{TotalMemory: 80 << 30}
	if v, ok := option(words, "total"); ok {
		n, err := units.Parse(v)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrCommand, err)
		}
		cfg.TotalMemory = n
	}
	if v, _ := option(words, "events"); v == "manual" {
		cfg.Events = sim.Manual
	}
	conf, _ := option(words, "conf")
	s, err := settings.Parse(conf)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCommand, err)
	}
	var limit uint64
	v, limited := option(words, "limit")
	if limited {
		if limit, err = size(v); err != nil {
			return err
		}
	}
	var version pytorch.Version
	if v, ok := option(words, "pytorch"); ok {
		if version, err = pytorch.Parse(v); err != nil {
			return fmt.Errorf("%w: %w", ErrCommand, err)
		}
	}
	*r = Runner{
		Options: r.Options, Device: sim.New(cfg),
		blocks: map[string]uint64{}, pools: map[string]*alloc.MemPool{}, captures: map[string]*alloc.Capture{},
		saved: map[string]*alloc.Checkpoint{},
	}
	r.Allocator = alloc.New(r.Device, append([]alloc.Option{alloc.WithSettings(s), alloc.WithVersion(version), alloc.WithObserver(r.observe)}, r.Options...)...)
	if limited {
		r.Allocator.SetLimit(limit)
	}
	return nil
}

// observe prints an event with its address as an offset into its segment.
func (r *Runner) observe(e alloc.Event) {
	r.plain.count(e)
	switch e.Action {
	case alloc.ActionOOM:
		r.say("oom %d", e.Size)
		return
	case alloc.ActionSegmentAlloc:
		name := r.nameSegment(e.Addr, e.Size, false)
		r.say("segment_alloc %s %d", name, e.Size)
		return
	case alloc.ActionSegmentFree:
		i := r.find(e.Addr)
		r.say("segment_free %s %d", r.segments[i].name, e.Size)
		r.segments = slices.Delete(r.segments, i, i+1)
		return
	case alloc.ActionSegmentMap:
		if r.find(e.Addr) < 0 {
			total := r.Device.TotalMemory()
			r.nameSegment(e.Addr, total+total/8, true)
		}
	}
	r.say("%s %s %d", e.Action, r.where(e.Addr), e.Size)
}

func (r *Runner) nameSegment(base, size uint64, expandable bool) string {
	name := ""
	for n := r.count; ; n = n/26 - 1 {
		name = string(rune('A'+n%26)) + name
		if n < 26 {
			break
		}
	}
	r.count++
	r.segments = append(r.segments, named{name, base, size, expandable})
	return name
}

func (r *Runner) find(addr uint64) int {
	return slices.IndexFunc(r.segments, func(s named) bool { return s.base <= addr && addr-s.base < s.size })
}

func (r *Runner) where(addr uint64) string {
	if name, offset, ok := r.Place(addr); ok {
		return fmt.Sprintf("%s+%d", name, offset)
	}
	return fmt.Sprintf("%#x", addr)
}

// Place returns the letter of the segment that holds an address, and the offset
// into it.
func (r *Runner) Place(addr uint64) (segment string, offset uint64, ok bool) {
	i := r.find(addr)
	if i < 0 {
		return "", 0, false
	}
	return r.segments[i].name, addr - r.segments[i].base, true
}

// Address returns where the block with a name is.
func (r *Runner) Address(name string) (addr uint64, ok bool) {
	addr, ok = r.blocks[name]
	return addr, ok
}

func (r *Runner) alloc(words []string) error {
	bytes, err := size(words[1])
	if err != nil {
		return err
	}
	stream, err := numberOption(words, "stream")
	if err != nil {
		return err
	}
	thread, err := numberOption(words, "thread")
	if err != nil {
		return err
	}
	if r.blocks[words[0]] != 0 {
		return fmt.Errorf("%w: %q is allocated", ErrCommand, words[0])
	}
	r.seats.late = true
	if done, err := r.allocTenant(words, bytes, stream); done || err != nil {
		return err
	}
	addr, err := r.Allocator.MallocOn(bytes, stream, thread)
	r.answer(err)
	if err == nil && addr != 0 {
		r.blocks[words[0]] = addr
	}
	return nil
}

func (r *Runner) free(words []string) error {
	addr, ok := r.blocks[words[0]]
	if !ok {
		return fmt.Errorf("%w: %q is not allocated", ErrCommand, words[0])
	}
	delete(r.blocks, words[0])
	r.answer(r.allocatorOf(words[0]).Free(addr))
	delete(r.seats.owner, words[0])
	return nil
}

func (r *Runner) record(words []string) error {
	stream, err := number(words[1])
	if err != nil {
		return err
	}
	r.answer(r.allocatorOf(words[0]).RecordStream(r.blocks[words[0]], stream))
	return nil
}

func (r *Runner) empty([]string) error {
	r.answer(r.emptyAll())
	return nil
}

func (r *Runner) set(words []string) error {
	r.answer(r.Allocator.Configure(strings.Join(words, " ")))
	return nil
}

func (r *Runner) limit(words []string) error {
	if words[0] == "none" {
		return r.Allocator.SetMemoryFraction(1)
	}
	n, err := size(words[0])
	if err == nil {
		r.Allocator.SetLimit(n)
	}
	return err
}

func (r *Runner) fraction(words []string) error {
	f, err := strconv.ParseFloat(words[0], 64)
	if err != nil {
		return fmt.Errorf("%w: %q is not a number", ErrCommand, words[0])
	}
	r.answer(r.Allocator.SetMemoryFraction(f))
	return nil
}

func (r *Runner) fail(words []string) error {
	n, err := number(words[1])
	if err != nil {
		return err
	}
	kind, ok := parseKind(words[0])
	if !ok || n < 1 || n > 1<<20 {
		return fmt.Errorf("%w: no driver call %q number %d", ErrCommand, words[0], n)
	}
	failure := error(driver.ErrOutOfMemory)
	if kind != sim.Malloc && kind != sim.Map && kind != sim.Reserve {
		failure = errors.New("driver failure")
	}
	r.Device.FailKind(kind, int(n), failure)
	return nil
}

// parseKind reads the name of a driver call, such as malloc or record_event.
func parseKind(name string) (sim.Kind, bool) {
	for k := sim.Malloc; k <= sim.MemInfo; k++ {
		if strings.ReplaceAll(k.String(), " ", "_") == name {
			return k, true
		}
	}
	return 0, false
}

func (r *Runner) complete(words []string) error {
	if words[0] == "all" {
		r.Device.CompleteAll()
		return nil
	}
	stream, err := number(words[0])
	if err == nil {
		r.Device.Complete(stream)
	}
	return err
}

// Finish frees every block, ends every route, gives up every pool and empties
// the cache. It returns an error if anything is refused or memory of the
// device stays behind.
func (r *Runner) Finish() error {
	r.Device.Heal()
	for _, m := range r.made {
		_ = m.End() // not all of them receive allocations
	}
	for name, addr := range r.blocks {
		if err := r.allocatorOf(name).Free(addr); err != nil {
			return fmt.Errorf("freeing %s at the end: %w", name, err)
		}
	}
	for _, m := range r.made {
		switch m := m.(type) {
		case *alloc.MemPool:
			_ = m.Close() // some are closed already
		case *alloc.Capture:
			_ = m.Release()
		}
	}
	if err := r.emptyAll(); err != nil {
		return fmt.Errorf("emptying the cache at the end: %w", err)
	}
	if err := r.Allocator.CheckInvariants(); err != nil {
		return fmt.Errorf("at the end: %w", err)
	}
	s := r.Allocator.Stats()
	if s.ActiveBytes.All.Current != 0 || s.RequestedBytes.All.Current != 0 || s.Allocation.All.Current != 0 {
		return fmt.Errorf("at the end %d bytes are active", s.ActiveBytes.All.Current)
	}
	if held := r.Device.Held(); held != 0 && r.Allocator.Undefined() == nil {
		return fmt.Errorf("at the end %d bytes of the device are still held", held)
	}
	return nil
}
