package export

import (
	"bufio"
	"encoding/binary"
	"io"
)

// The field numbers of protos/perfetto/trace in github.com/google/perfetto.
const (
	tracePacket = 1 // Trace.packet

	packetTimestamp  = 8 // TracePacket
	packetSequence   = 10
	packetTrackEvent = 11
	packetInterned   = 12
	packetFlags      = 13
	packetTrack      = 60

	trackUUID     = 1 // TrackDescriptor
	trackName     = 2
	trackParent   = 5
	trackCounter  = 8
	trackOrdering = 11
	trackRank     = 12

	counterUnit  = 3 // CounterDescriptor
	counterShare = 7

	eventAnnotations = 4 // TrackEvent
	eventType        = 9
	eventNameID      = 10
	eventTrack       = 11
	eventCategory    = 22
	eventCounter     = 30

	annotationNameID  = 1 // DebugAnnotation
	annotationUint    = 3
	annotationInt     = 4
	annotationPointer = 7
	annotationArray   = 12
	annotationTextID  = 17

	internedNames           = 2 // InternedData
	internedAnnotationNames = 3
	internedTexts           = 29
	internedID              = 1 // EventName, DebugAnnotationName, InternedString
	internedText            = 2
)

// The values of enums.
const (
	flagCleared = 1 // SEQ_INCREMENTAL_STATE_CLEARED
	flagNeeds   = 2 // SEQ_NEEDS_INCREMENTAL_STATE

	typeBegin   = 1 // TrackEvent.Type
	typeEnd     = 2
	typeInstant = 3
	typeCounter = 4

	unitBytes     = 3 // CounterDescriptor.UNIT_SIZE_BYTES
	orderExplicit = 3 // TrackDescriptor.EXPLICIT
)

// sequence is the one packet sequence of our traces.
const sequence = 1

// packetWriter writes packets. Texts that come often are sent once, ahead of
// the packet that uses them first.
type packetWriter struct {
	w       *bufio.Writer
	started bool
	buf     message // of the packet
	scratch message
	pending message // interned data for the next packet
	ids     [3]map[string]uint64
	tracks  uint64
}

func newPacketWriter(w io.Writer) *packetWriter {
	p := &packetWriter{w: bufio.NewWriterSize(w, 1<<16)}
	for i := range p.ids {
		p.ids[i] = map[string]uint64{}
	}
	return p
}

// send writes a packet whose own fields are in body.
func (p *packetWriter) send(body message) error {
	flags := uint64(flagNeeds)
	if !p.started {
		flags |= flagCleared
		p.started = true
	}
	p.buf = append(p.buf[:0], body...)
	p.buf.uint(packetSequence, sequence)
	p.buf.uint(packetFlags, flags)
	if len(p.pending) > 0 {
		p.buf.message(packetInterned, p.pending)
		p.pending = p.pending[:0]
	}
	p.scratch = p.scratch[:0]
	p.scratch.message(tracePacket, p.buf)
	_, err := p.w.Write(p.scratch)
	return err
}

// event writes a TrackEvent.
func (p *packetWriter) event(ns uint64, ev message) error {
	var body message
	body.uint(packetTimestamp, ns)
	body.message(packetTrackEvent, ev)
	return p.send(body)
}

// track makes a track under a parent, 0 for none, and returns its uuid.
// Siblings are shown in the order of their rank; those of one name as one.
func (p *packetWriter) track(parent uint64, name string, rank int, counter bool) (uint64, error) {
	p.tracks++
	var t message
	t.uint(trackUUID, p.tracks)
	t.text(trackName, name)
	if parent != 0 {
		t.uint(trackParent, parent)
	} else {
		t.uint(trackOrdering, orderExplicit)
	}
	t.int(trackRank, int64(rank))
	if counter {
		var c message
		c.uint(counterUnit, unitBytes)
		c.text(counterShare, "memory")
		t.message(trackCounter, c)
	}
	var body message
	body.message(packetTrack, t)
	return p.tracks, p.send(body)
}

// The tables of interned texts.
const (
	tableNames = iota
	tableAnnotationNames
	tableTexts
)

var internedFields = [3]uint64{internedNames, internedAnnotationNames, internedTexts}

// intern returns the number of a text in a table.
func (p *packetWriter) intern(table int, text string) uint64 {
	id, ok := p.ids[table][text]
	if !ok {
		id = uint64(len(p.ids[table]) + 1)
		p.ids[table][text] = id
		var entry message
		entry.uint(internedID, id)
		entry.text(internedText, text)
		p.pending.message(internedFields[table], entry)
	}
	return id
}

// annotate adds a debug annotation to an event.
func (p *packetWriter) annotate(ev *message, name string, field, value uint64) {
	var a message
	a.uint(annotationNameID, p.intern(tableAnnotationNames, name))
	a.uint(field, value)
	ev.message(eventAnnotations, a)
}

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
