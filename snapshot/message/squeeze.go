package message

// squeezed is a text in lower case without its blanks, in which places can be
// found again.
type squeezed struct {
	text  string
	marks []int // the source offset of every marked byte
}

const marked = 256

func squeeze[T string | []byte](source T) squeezed {
	out := make([]byte, 0, len(source))
	var marks []int
	for i := range len(source) {
		c := source[i]
		if c <= ' ' {
			continue
		}
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if len(out)%marked == 0 {
			marks = append(marks, i)
		}
		out = append(out, c)
	}
	return squeezed{string(out), marks}
}

// offset returns where in source the byte at i stood.
func offset[T string | []byte](s squeezed, source T, i int) int {
	at := s.marks[i/marked]
	for left := i % marked; ; at++ {
		if source[at] > ' ' {
			if left == 0 {
				return at
			}
			left--
		}
	}
}
