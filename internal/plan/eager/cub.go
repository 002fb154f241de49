package eager

import "math/bits"

// Sorts and scans come from CUB, which asks for one temporary buffer: its parts
// are rounded up to 256 bytes each, and 255 bytes are for aligning the whole.

const (
	cubAlign = 256
	// A radix sort looks at eight bits of the keys at a time.
	radixBits   = 8
	radixDigits = 1 << radixBits
	// Pairs of two 8-byte values, compute capability 9: up to oneTile pairs are
	// sorted by a single block, others in tiles of sortTile.
	oneTile  = 256 * 9
	sortTile = 384 * 12
	// A sort goes over portions of the pairs, which count in 32 bits.
	sortPortion = (1<<28 - 1) / sortTile * sortTile
)

func cubBuffer(parts ...int64) int64 {
	total := int64(cubAlign - 1)
	for _, p := range parts {
		total += ceil(p, cubAlign) * cubAlign
	}
	return total
}

// radixScratch is the temporary memory of a radix sort of count pairs of 8-byte
// keys and values by the lowest keyBits bits of the keys.
func radixScratch(count, keyBits int64) int64 {
	if count <= oneTile {
		return 1
	}
	passes := ceil(keyBits, radixBits)
	portions := ceil(count, sortPortion)
	blocks := ceil(min(count, sortPortion), sortTile)
	again := int64(0) // a second copy of keys, and of values
	if passes > 1 {
		again = count * 8
	}
	return cubBuffer(
		portions*passes*radixDigits*8, // digits counted
		blocks*radixDigits*4,          // what blocks pass to those after them
		again,
		again,
		portions*passes*4, // which block is next
	)
}

// keyBits is the bits that keys up to the largest have.
func keyBits(largest int64) int64 { return max(int64(bits.Len64(uint64(largest))), 1) }

// tileStates is what blocks of a scan over 8-byte numbers pass to each other, and
// one byte that is always requested: count items in tiles.
func tileStates(count, tile int64) int64 { return cubBuffer((ceil(count, tile)+32)*16, 1) }

// scanScratch is the temporary memory of a scan that one block does.
const scanScratch = 1023
