package oracle

import (
	"fmt"
	"io"
)

// The limits on what is read, so that a small file that unpacks without end,
// or one long value, cannot take all memory.
const (
	MaxBytes = 4 << 30  // bytes of JSON of a recording, after decompression
	maxValue = 64 << 20 // bytes of one text or number
	maxRows  = 1 << 26  // elements of one list
	maxDepth = 1000     // lists in lists
)

// limits are the caps that a reader keeps.
type limits struct {
	bytes, value int64
}

// cappedReader fails once the input is too long, or once it has run so far
// ahead of the decoder that this must be amid one long value.
type cappedReader struct {
	r       io.Reader
	max     limits
	read    int64
	decoded func() int64 // how far the decoder is
}

func (c *cappedReader) Read(p []byte) (int, error) {
	if c.read-c.decoded() > c.max.value {
		return 0, &sizeError{"one value of the recording", c.max.value}
	}
	if int64(len(p)) > c.max.bytes-c.read+1 {
		p = p[:c.max.bytes-c.read+1]
	}
	n, err := c.r.Read(p)
	if c.read += int64(n); c.read > c.max.bytes {
		return 0, &sizeError{"the recording", c.max.bytes}
	}
	return n, err
}

// sizeError says what is too large.
type sizeError struct {
	what string
	max  int64
}

func (e *sizeError) Error() string {
	return fmt.Sprintf("%s is larger than %d bytes of JSON", e.what, e.max)
}
