package hub

import (
	"bytes"
	"encoding/binary"
	"hash"
	"testing"
)

// messageRecord makes the record of a message.
func messageRecord(h hash.Hash64, seq uint64, subject, message string) []byte {
	n := recordHead + len(subject) + len(message) + recordHash
	data := make([]byte, recordHead, n)
	binary.LittleEndian.PutUint32(data, uint32(n))
	binary.LittleEndian.PutUint64(data[4:], seq)
	binary.LittleEndian.PutUint64(data[12:], 1e18)
	binary.LittleEndian.PutUint16(data[20:], uint16(len(subject)))
	data = append(append(data, subject...), message...)
	h.Reset()
	h.Write(data[4:20])
	h.Write([]byte(subject + message))
	return h.Sum(data)
}

// sampleBlock is three messages and a tombstone.
func sampleBlock(tb testing.TB) []byte {
	tb.Helper()
	h, err := blockHash("TEST", 1)
	if err != nil {
		tb.Fatal(err)
	}
	data := messageRecord(h, 1, "a", "one")
	data = append(data, messageRecord(h, 2, "b.c", "two")...)
	data = append(data, erasedRecord(h, 3, 5)...)
	return append(data, messageRecord(h, 4, "a", "")...)
}

// TestReadBlock: a whole block is intact; garbage is not, takes no time worth mentioning, and hides nothing behind it.
func TestReadBlock(t *testing.T) {
	whole := sampleBlock(t)
	st, err := readBlock("TEST", 1, whole)
	if err != nil || st.damaged != 0 || st.top != 4 || !st.served || !bytes.Equal(st.intact, whole) {
		t.Errorf("a whole block: %+v, %v", st, err)
	}
	for _, word := range []string{"\x00\x00\x10\x00", "\x01\x01\x01\x00", "AA\x04\x00", "\x00"} { // lengths that may be
		garbage := bytes.Repeat([]byte(word), 4<<20/len(word))
		st, err := readBlock("TEST", 1, append(bytes.Clone(garbage), whole...))
		if err != nil || st.damaged != len(garbage) || st.tail != 0 || st.top != 4 || !bytes.Equal(st.intact, whole) {
			t.Errorf("%q before a block: %d bytes damaged, %v", word, st.damaged, err)
		}
	}
}

// FuzzReadBlock: whatever a block holds, its bytes are in intact records or damaged, and the intact ones make a whole block.
func FuzzReadBlock(f *testing.F) {
	whole := sampleBlock(f)
	f.Add(whole)
	f.Add(whole[:len(whole)-3])
	f.Add(append(bytes.Repeat([]byte{7}, 40), whole...))
	f.Fuzz(func(t *testing.T, data []byte) {
		before := bytes.Clone(data)
		st, err := readBlock("TEST", 1, data)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(data, before) {
			t.Fatal("the block was changed")
		}
		if len(st.intact)+st.damaged != len(data) || st.tail > st.damaged {
			t.Fatalf("%d bytes intact and %d damaged of %d, %d at the end", len(st.intact), st.damaged, len(data), st.tail)
		}
		again, err := readBlock("TEST", 1, st.intact)
		if err != nil || again.damaged != 0 || again.top != st.top {
			t.Fatalf("the intact records: %+v, %v", again, err)
		}
	})
}
