package export

import "encoding/binary"

// message is a protocol buffer message being written. Only what Perfetto's
// trace.proto needs is here: unsigned and signed integers as varints, and texts
// and messages with their length.
type message []byte

// The wire types.
const (
	wireVarint = 0
	wireBytes  = 2
)

func (m *message) tag(field, wire uint64) { *m = binary.AppendUvarint(*m, field<<3|wire) }

func (m *message) uint(field, v uint64) {
	m.tag(field, wireVarint)
	*m = binary.AppendUvarint(*m, v)
}

// int is for the type int64, which has no zigzag.
func (m *message) int(field uint64, v int64) { m.uint(field, uint64(v)) }

func (m *message) text(field uint64, s string) {
	m.tag(field, wireBytes)
	*m = binary.AppendUvarint(*m, uint64(len(s)))
	*m = append(*m, s...)
}

func (m *message) message(field uint64, sub message) {
	m.tag(field, wireBytes)
	*m = binary.AppendUvarint(*m, uint64(len(sub)))
	*m = append(*m, sub...)
}
