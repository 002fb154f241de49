package dry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/internal/unpack"
)

// Bounds of what is read, so that a damaged file is refused before it takes the
// machine's memory.
const (
	maxBytes  = eager.MaxBytes // of a storage
	maxLive   = 1 << 43        // of all at a time
	maxID     = 1 << 22        // of frames, stacks and kinds
	maxEvents = 1 << 25
	maxMetas  = 1 << 22 // tensors of all kinds, and frames of all stacks
	maxIDs    = 1 << 28 // storages of all calls
)

// rewrite is what to do about a file that is wrong.
const rewrite = "write it anew with ashlar dry --ledger FILE -- python script.py"

// Read reads the file that a dry run wrote; it may be compressed. A
// file that is cut short is read up to the cut, and [Recording.Cut] says so.
func Read(ctx context.Context, from io.Reader) (*Recording, error) {
	plain, err := unpack.New(from, unpack.Ratio)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, rewrite)
	}
	defer plain.Close()
	r := &reader{
		lines: lines{from: plain.Reader}, out: &Recording{},
		alive: map[int64]int32{}, noteAt: map[string]int{}, unknownAt: map[string]int{},
	}
	if err := r.header(); err != nil {
		return nil, err
	}
	for {
		if r.lines.n&0xfff == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		line, whole, err := r.lines.next()
		var bomb *unpack.BombError
		switch {
		case errors.Is(err, io.EOF):
			return r.out, nil
		case errors.Is(err, errLongLine), errors.As(err, &bomb):
			return nil, r.problem("%v", err)
		case err != nil:
			r.out.Cut = fmt.Sprintf("the file ends in line %d, in the middle of its compressed data (%v)", r.lines.n, err)
			return r.out, nil
		}
		if err := r.line(line); err != nil {
			if !whole {
				r.out.Cut = fmt.Sprintf("the file ends in the middle of line %d", r.lines.n)
				return r.out, nil
			}
			return nil, err
		}
	}
}

// reader is a file being read.
type reader struct {
	lines lines
	out   *Recording

	dense  []int32         // storage of the file -> that of the recording, or gone
	alive  map[int64]int32 // the same of numbers that are far from the others
	births int64
	metas  int   // of kinds, and frames of stacks
	live   int64 // bytes
	device map[string]int16
	buffer []int64

	noteAt, unknownAt map[string]int
}

// Storages that are not there.
const (
	never int32 = -1 // was not born
	gone  int32 = -2
)

func (r *reader) problem(format string, args ...any) error {
	return &Error{Line: max(r.lines.n, 1), Text: fmt.Sprintf(format, args...)}
}

func (r *reader) header() error {
	line, _, err := r.lines.next()
	if err != nil && !errors.Is(err, io.EOF) {
		return r.problem("%v; %s", err, rewrite)
	}
	if len(bytes.TrimSpace(line)) == 0 {
		return r.problem("the file is empty: the dry run ended before it wrote anything; %s", rewrite)
	}
	if line[0] == 0x80 {
		return r.problem("the file is a pickle, such as a recorded snapshot: give it to --against, or to ashlar explain; a ledger is what ashlar dry --ledger FILE -- python script.py writes")
	}
	h := &r.out.Header
	if err := json.Unmarshal(line, h); err != nil || line[0] != '{' {
		return r.problem("%s is not the beginning of a dry run's ledger; %s", quoted(line), rewrite)
	}
	switch {
	case h.Version == 0:
		return r.problem(`there is no "ashlar_dry": the file is not a dry run's ledger; %s`, rewrite)
	case h.Version != Version:
		return r.problem("the ledger is of version %d, and this ashlar reads version %d: use a recorder and an ashlar of one version; ashlar dry -- python script.py does", h.Version, Version)
	case h.Device.Total < 0 || h.Device.Processors < 0 || h.Device.Threads < 0:
		return r.problem("the device has negative properties; %s", rewrite)
	}
	return nil
}

// line reads a line after the first.
func (r *reader) line(line []byte) error {
	if len(r.out.events) >= maxEvents || len(r.out.ids) >= maxIDs {
		return r.problem("the ledger has more than %s events, or their calls name more than %s storages: give the recorder fewer --steps",
			units.Count(maxEvents), units.Count(maxIDs))
	}
	c := cursor{rest: line}
	switch c.letter() {
	case 'o':
		return r.call(&c, line)
	case 'b':
		return r.birth(&c, line)
	case 'd':
		id := c.next()
		if !c.end() {
			return r.malformed(line)
		}
		return r.death(id)
	case 'r':
		return r.resize(&c, line)
	}
	if c.bad {
		if len(bytes.TrimSpace(line)) == 0 {
			return nil
		}
		return r.malformed(line)
	}
	return r.rare(line)
}

func (r *reader) malformed(line []byte) error {
	return r.problem("%s is not a line of a dry run's ledger; %s", quoted(line), rewrite)
}

// storage returns the storage that a number of the file stands for.
func (r *reader) storage(id int64) int32 {
	if id >= 0 && id < int64(len(r.dense)) {
		return r.dense[id]
	}
	if s, ok := r.alive[id]; ok {
		return s
	}
	return never
}

// setStorage has a number stand for a storage. The recorder counts them up, so a
// slice holds them; a map holds what a damaged file may have.
func (r *reader) setStorage(id int64, to int32) {
	const room = 1 << 12
	if n := int64(len(r.dense)); id < n {
		r.dense[id] = to
		return
	} else if id < 8*r.births+room {
		for ; n < id; n++ {
			r.dense = append(r.dense, never)
		}
		r.dense = append(r.dense, to)
		return
	}
	r.alive[id] = to
}

func (r *reader) add(e event) {
	r.out.events = append(r.out.events, e)
	r.out.Events++
}

func (r *reader) birth(c *cursor, line []byte) error {
	id, bytes, device := c.next(), c.next(), c.text()
	switch {
	case !c.end():
		return r.malformed(line)
	case id < 0:
		return r.problem("storage %d: storages count up from 0; %s", id, rewrite)
	case r.storage(id) >= 0:
		return r.problem("storage %d is born a second time while it lives; %s", id, rewrite)
	case bytes < 0 || bytes > maxBytes:
		return r.problem("storage %d has %d bytes, which no storage can have; %s", id, bytes, rewrite)
	}
	r.births++
	s := int32(len(r.out.storages))
	r.out.storages = append(r.out.storages, storage{bytes, r.cuda(device)})
	r.setStorage(id, s)
	if err := r.grow(s, bytes); err != nil {
		return err
	}
	r.add(event{what: born, a: s})
	return nil
}

// grow counts bytes that a storage on a GPU takes more.
func (r *reader) grow(s int32, by int64) error {
	if r.out.storages[s].cuda < 0 {
		return nil
	}
	if r.live += by; r.live > maxLive {
		return r.problem("%s are allocated at a time, more than any GPU has: give the script a smaller batch", units.Size(uint64(r.live)))
	}
	return nil
}

// cuda returns the number of a device: cuda:1 is 1; -1 for any other.
func (r *reader) cuda(device string) int16 {
	n, ok := r.device[device]
	if !ok {
		n = -1
		if kind, number, _ := strings.Cut(device, ":"); kind == "cuda" {
			n = 0
			if k, err := strconv.ParseUint(number, 10, 8); err == nil {
				n = int16(k)
			}
		}
		if r.device == nil || len(r.device) > 1<<10 {
			r.device = map[string]int16{}
		}
		r.device[device] = n
	}
	return n
}

// known returns a storage that lives.
func (r *reader) known(id int64, what string) (int32, error) {
	switch s := r.storage(id); s {
	case never:
		return s, r.problem("storage %d %s, but it was never born; %s", id, what, rewrite)
	case gone:
		return s, r.problem("storage %d %s, but it is gone already; %s", id, what, rewrite)
	default:
		return s, nil
	}
}

func (r *reader) death(id int64) error {
	s, err := r.known(id, "dies")
	if err != nil {
		return err
	}
	r.setStorage(id, gone)
	r.live -= max(r.out.storages[s].bytes, 0) * onGPU(r.out.storages[s])
	r.add(event{what: died, a: s})
	return nil
}

// onGPU is 1 for a storage on a GPU, else 0.
func onGPU(s storage) int64 {
	if s.cuda < 0 {
		return 0
	}
	return 1
}

func (r *reader) resize(c *cursor, line []byte) error {
	id, bytes := c.next(), c.next()
	if !c.end() {
		return r.malformed(line)
	}
	if bytes < 0 || bytes > maxBytes {
		return r.problem("storage %d is resized to %d bytes, which no storage can have; %s", id, bytes, rewrite)
	}
	s, err := r.known(id, "is resized")
	if err != nil {
		return err
	}
	was := r.out.storages[s].bytes
	if err := r.grow(s, bytes-was); err != nil {
		return err
	}
	// The storage keeps its number and gets a new entry, so that the birth has the
	// first size.
	next := int32(len(r.out.storages))
	r.out.storages = append(r.out.storages, storage{bytes, r.out.storages[s].cuda})
	r.setStorage(id, next)
	r.add(event{what: resized, a: s, b: next})
	return nil
}

func (r *reader) call(c *cursor, line []byte) error {
	k, stack, thread, stream := c.next(), c.next(), c.next(), c.next()
	r.buffer = c.list(r.buffer[:0])
	in := len(r.buffer)
	r.buffer = c.list(r.buffer)
	if !c.end() {
		return r.malformed(line)
	}
	if k < 0 || k >= int64(len(r.out.kinds)) || !r.out.kinds[k].defined {
		return r.problem("a call of kind %d, which no line before defines; %s", k, rewrite)
	}
	kind := &r.out.kinds[k]
	if in != len(kind.in) || len(r.buffer)-in != len(kind.out) {
		return r.problem("a call of %s has %d inputs and %d outputs, but its kind has %d and %d; %s",
			kind.op, in, len(r.buffer)-in, len(kind.in), len(kind.out), rewrite)
	}
	if stack >= int64(len(r.out.stacks)) || stack < -1 {
		return r.problem("a call of %s has stack %d, which no line before defines; %s", kind.op, stack, rewrite)
	}
	if thread < 0 || thread > 255 || stream < 0 {
		return r.problem("a call of %s is on thread %d and stream %d, which cannot be; %s", kind.op, thread, stream, rewrite)
	}
	e := event{what: called, thread: uint8(thread), stream: uint8(min(stream, 255)), a: int32(k), b: int32(stack), at: int64(len(r.out.ids))}
	for i, id := range r.buffer {
		s := never
		if id >= 0 {
			s = r.storage(id)
		}
		if i >= in && id >= 0 && s < 0 {
			_, err := r.known(id, "is made by "+kind.op)
			return err
		}
		r.out.ids = append(r.out.ids, max(s, never))
	}
	r.add(e)
	return nil
}
