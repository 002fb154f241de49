package pickle

import "fmt"

// Value is a value of the machine. The zero Value is none at all: a hook
// returns it for a container it does not want.
type Value uint64

// Tags stand in the upper four bits. Those from tagFresh on are not data yet:
// a value with one of them must be closed before it becomes part of another.
const (
	tagNone   = iota + 1
	tagBool   // payload 0 or 1
	tagInt    // payload is the number, 60 bits with sign
	tagWide   // payload is an index into wides, times two, plus one if negative
	tagBig    // payload is an index into bigs
	tagFloat  // payload is an index into floats
	tagString // payload is the hook's number of the text
	tagBytes  // the same for bytes
	tagEmpty  // an empty container, payload is its Kind
	tagObject // payload is an index into objects
	tagRecord // payload is kind (6 bits) and index
	tagRun    // payload is kind (6 bits), count and first index
	tagFresh  // an open container without items, payload is Kind and memo
	tagOpen   // an open container, payload is an index into open
	tagGlobal // payload is one of the globals that are let through
)

const (
	tagShift   = 60
	payload    = 1<<tagShift - 1
	kindShift  = 54
	maxKind    = 1<<(tagShift-kindShift) - 1
	indexMask  = 1<<kindShift - 1
	runBits    = 25 // of the count in a run
	maxRun     = 1<<runBits - 1
	firstMask  = 1<<(kindShift-runBits) - 1
	freshShift = 40 // of the Kind in an open container without items

	firstOpen = Value(tagFresh) << tagShift
)

// Kind says what a value is.
type Kind uint8

// The kinds of values. Sets and frozen sets are lists.
const (
	Invalid Kind = iota
	None
	Bool
	Int
	Float
	String
	Bytes
	List
	Tuple
	Dict
	Record
)

var kindNames = [...]string{
	"nothing", "None", "a bool", "an int", "a float", "a str", "bytes", "a list", "a tuple", "a dict", "a record",
}

// String returns the kind in words, as errors need it.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

func (v Value) tag() uint { return uint(v >> tagShift) }

// usable reports whether v is data that may become part of a container: neither
// 0 nor open, in one comparison.
func (v Value) usable() bool { return v-1 < firstOpen-1 }

func tagged(tag uint, p uint64) Value { return Value(tag)<<tagShift | Value(p) }

// MakeRecord returns the value that names row index of the hook's table kind,
// which must be below 64.
func MakeRecord(kind uint8, index int) Value {
	return tagged(tagRecord, uint64(kind&maxKind)<<kindShift|uint64(index)&indexMask)
}

// AsRecord returns table and row of a record.
func (v Value) AsRecord() (kind uint8, index int, ok bool) {
	return uint8(v >> kindShift & maxKind), int(v & indexMask), v.tag() == tagRecord
}

// AsString returns the hook's number of a text.
func (v Value) AsString() (id uint32, ok bool) { return uint32(v), v.tag() == tagString }

// AsBytes returns the hook's number of a bytes object.
func (v Value) AsBytes() (id uint32, ok bool) { return uint32(v), v.tag() == tagBytes }

// AsBool returns a truth value.
func (v Value) AsBool() (b, ok bool) { return v == MakeBool(true), v.tag() == tagBool }

// IsNone reports whether v is None.
func (v Value) IsNone() bool { return v.tag() == tagNone }

// MakeString returns the value of the text that has the given number in the
// hook's table.
func MakeString(id uint32) Value { return tagged(tagString, uint64(id)) }

// MakeNone returns None.
func MakeNone() Value { return tagged(tagNone, 0) }

// MakeBool returns True or False.
func MakeBool(b bool) Value {
	if b {
		return tagged(tagBool, 1)
	}
	return tagged(tagBool, 0)
}

// smallInt returns the value of a number that fits 60 bits.
func smallInt(n int64) Value { return tagged(tagInt, uint64(n)&payload) }

func fitsSmall(n int64) bool { return n<<4>>4 == n }

// small returns the number of a tagInt value.
func (v Value) small() int64 { return int64(v<<4) >> 4 }

// makeRun returns a row of consecutive records of one table.
func makeRun(kind uint8, first, count int) Value {
	return tagged(tagRun, uint64(kind)<<kindShift|uint64(count)<<(kindShift-runBits)|uint64(first))
}

// run returns table, first row and length of a run.
func (v Value) run() (kind uint8, first, count int) {
	return uint8(v >> kindShift & maxKind), int(v & firstMask), int(v >> (kindShift - runBits) & maxRun)
}

// join puts v behind a record or a run if it continues it.
func join(last, v Value) (Value, bool) {
	kind, index, ok := v.AsRecord()
	count := 1
	if !ok {
		if v.tag() != tagRun {
			return 0, false
		}
		kind, index, count = v.run()
	}
	var lastKind uint8
	var first, n int
	switch last.tag() {
	case tagRecord:
		lastKind, first, _ = last.AsRecord()
		n = 1
	case tagRun:
		lastKind, first, n = last.run()
	default:
		return 0, false
	}
	if kind != lastKind || first+n != index || n+count > maxRun || first > firstMask {
		return 0, false
	}
	return makeRun(kind, first, n+count), true
}

// compact replaces rows of consecutive records by runs, in place.
func compact(items []Value) []Value {
	if len(items) == 0 {
		return items
	}
	last := 0
	for _, v := range items[1:] {
		if run, ok := join(items[last], v); ok {
			items[last] = run
			continue
		}
		last++
		items[last] = v
	}
	return items[:last+1]
}

// AsInt returns an integer of at most 60 bits. [Machine.Int] knows all.
func (v Value) AsInt() (int64, bool) { return v.small(), v.tag() == tagInt }
