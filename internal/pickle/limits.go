package pickle

// Limits bound what a file may ask for. A zero field stands for its default.
type Limits struct {
	Depth  int   // containers inside each other; 200
	Memo   int   // entries of the memo; 2^31
	String int   // bytes of one text; 64 MiB
	Long   int   // bytes of one integer; 1,024
	Bytes  int64 // bytes of the file; 2^46
	Stack  int   // values on the stack; 2^24
	Values int   // values in containers that the hook does not take; 2^26
}

// WithDefaults returns l with its zero fields filled in.
func (l Limits) WithDefaults() Limits {
	or := func(field *int, n int) {
		if *field <= 0 {
			*field = n
		}
	}
	or(&l.Depth, 200)
	or(&l.Memo, 1<<31)
	or(&l.String, 64<<20)
	or(&l.Long, 1024)
	or(&l.Stack, 1<<24)
	or(&l.Values, 1<<26)
	l.Depth = min(l.Depth, 1<<15)
	if l.Bytes <= 0 {
		l.Bytes = 1 << 46
	}
	return l
}
