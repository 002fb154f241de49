package snapshot

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/pickle"
	"github.com/ashlar-mem/ashlar/internal/unpack"
)

// Limits bound what a file may ask for. A zero field stands for its default,
// which no real file comes near.
type Limits struct {
	Bytes  int64 // of the file, decompressed; 1 TiB
	Ratio  int64 // of decompression, from 64 MiB on; 500
	Depth  int   // containers inside each other; 200
	Memo   int   // objects that a pickle remembers; 2^31
	String int   // bytes of one text; 64 MiB
	Extra  int   // values in fields that are not known; 20 million
}

func (l Limits) withDefaults() Limits {
	if l.Bytes <= 0 {
		l.Bytes = 1 << 40
	}
	if l.Ratio <= 0 {
		l.Ratio = unpack.Ratio
	}
	if l.Extra <= 0 {
		l.Extra = 20_000_000
	}
	p := pickle.Limits{Depth: l.Depth, Memo: l.Memo, String: l.String}.WithDefaults()
	l.Depth, l.Memo, l.String = p.Depth, p.Memo, p.String
	return l
}

func (l Limits) pickle() pickle.Limits {
	return pickle.Limits{Bytes: l.Bytes, Depth: l.Depth, Memo: l.Memo, String: l.String, Values: l.Extra}
}

// spend counts values that are copied out of the machine.
func (b *builder) spend(n int) error {
	if b.expanded += n; b.expanded > b.limits.Extra {
		return b.tooMuch()
	}
	return nil
}

func (b *builder) tooMuch() error {
	return fmt.Errorf("more than %d values in fields of no known meaning, or too many in one: the file is damaged or made to do harm", b.limits.Extra)
}
