package hub

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"

	"github.com/minio/highwayhash"
)

// A nats-server keeps a stream in blocks. A block is records, one behind the other:
// length (4 bytes), sequence number (8), time (8), length of the subject (2), subject,
// header and data, hash (8). See server/filestore.go of the version in go.mod.
const (
	recordHead    = 22
	recordHash    = 8
	longestRecord = 32 << 20
	hasHeader     = 1 << 31 // in the length; then four more bytes follow the subject
	isErased      = 1 << 63 // in the sequence number: the message is gone
	isTombstone   = 1 << 62 // in the sequence number: another record is gone
)

// keyedHash returns the hash by which a nats-server knows its files.
func keyedHash(name string) (hash.Hash64, error) {
	key := sha256.Sum256([]byte(name))
	return highwayhash.New64(key[:])
}

func blockName(index int) string { return fmt.Sprintf("%d.blk", index) }

func blockHash(stream string, index int) (hash.Hash64, error) {
	return keyedHash(fmt.Sprintf("%s-%d", stream, index))
}

// record is one that begins where somebody looks.
type record struct {
	length int // 0: there is none
	seq    uint64
	marked bool // erased, or a tombstone
	intact bool
}

// recordAt reads the record that data begins with.
func recordAt(h hash.Hash64, data []byte) record {
	if len(data) < recordHead {
		return record{}
	}
	length, seq := binary.LittleEndian.Uint32(data), binary.LittleEndian.Uint64(data[4:])
	subject := int(binary.LittleEndian.Uint16(data[20:]))
	rest := recordHead + subject
	if length&hasHeader != 0 {
		rest += 4
	}
	n := int(length &^ hasHeader)
	if n < rest+recordHash || n > longestRecord || n > len(data) || !isSubject(data[recordHead:recordHead+subject], seq) {
		return record{}
	}
	h.Reset()
	h.Write(data[4:20])
	h.Write(data[recordHead : recordHead+subject])
	h.Write(data[rest : n-recordHash])
	return record{
		length: n, seq: seq &^ (isErased | isTombstone), marked: seq&(isErased|isTombstone) != 0,
		intact: bytes.Equal(h.Sum(nil), data[n-recordHash:n]),
	}
}

// isSubject reports whether a record can have that subject: only those of messages that are gone have none. What is no record is
// found out without its hash, which would be made at every byte of garbage.
func isSubject(subject []byte, seq uint64) bool {
	for _, c := range subject {
		if c <= ' ' || c == 0x7f {
			return false
		}
	}
	return len(subject) > 0 || seq&(isErased|isTombstone) != 0
}

// erasedRecord says that everything up to a sequence number has been there.
func erasedRecord(h hash.Hash64, seq uint64, timeNS int64) []byte {
	data := make([]byte, recordHead, recordHead+recordHash)
	binary.LittleEndian.PutUint32(data, recordHead+recordHash)
	binary.LittleEndian.PutUint64(data[4:], seq|isErased)
	binary.LittleEndian.PutUint64(data[12:], uint64(timeNS))
	h.Reset()
	h.Write(data[4:20])
	return h.Sum(data)
}

// blockState is what a block holds.
type blockState struct {
	intact  []byte // its intact records
	damaged int    // bytes that are in none
	tail    int    // those at the end
	top     uint64 // the highest sequence number of an intact record
	// served reports whether a server that does not read the whole block serves
	// the intact records, and finds the damaged ones when it is asked for them.
	served bool
}

// readBlock looks at every record of a block. It finds those behind a damaged one,
// too: a server gives them up.
func readBlock(stream string, index int, data []byte) (blockState, error) {
	h, err := blockHash(stream, index)
	if err != nil {
		return blockState{}, err
	}
	st := blockState{intact: data, served: true}
	last, doubtful := uint64(0), uint64(0) // sequence numbers: of the last message, of a damaged one behind it
	for at := 0; at < len(data); {
		r := recordAt(h, data[at:])
		if r.intact {
			if st.damaged > 0 {
				st.intact = append(st.intact, data[at:at+r.length]...)
			}
			if !r.marked {
				st.served = st.served && r.seq > doubtful
				last, doubtful = r.seq, 0
			}
			st.top, st.tail = max(st.top, r.seq), 0
			at += r.length
			continue
		}
		next := nextRecord(h, data, at, r.length)
		if r.length == 0 || next != at+r.length || next == len(data) || r.marked || r.seq <= max(last, doubtful) {
			st.served = false
		}
		doubtful = r.seq
		if st.damaged == 0 {
			st.intact = bytes.Clone(data[:at])
		}
		st.damaged += next - at
		st.tail += next - at
		at = next
	}
	st.served = st.served && doubtful == 0
	return st, nil
}

// nextRecord returns where the next record begins behind a damaged one, whose length
// may be right.
func nextRecord(h hash.Hash64, data []byte, at, length int) int {
	if length > 0 && (at+length == len(data) || recordAt(h, data[at+length:]).length > 0) {
		return at + length
	}
	for at++; at < len(data); at++ {
		if recordAt(h, data[at:]).intact {
			break
		}
	}
	return at
}
