package placement

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Problem is a list of buffers in the order of the file. Of several that begin at one
// time the earlier comes first.
type Problem struct {
	IDs     []string
	Buffers []Buffer
}

// Header is the first line of a problem.
const Header = "id,lower,upper,size"

// Read reads a problem: lines of id, lower, upper and size in bytes. A buffer is
// live from lower on and no more at upper. The error names the line.
func Read(r io.Reader) (*Problem, error) {
	lines := bufio.NewScanner(r)
	p := &Problem{}
	seen := map[string]bool{}
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		switch {
		case n == 1 && line != Header:
			return nil, fmt.Errorf("line 1 is %q: write %s", clip(line), Header)
		case n == 1 || line == "":
			continue
		}
		if err := p.add(line); err != nil {
			return nil, fmt.Errorf("line %d: %w; write %s", n, err, Header)
		}
		id := p.IDs[len(p.IDs)-1]
		if seen[id] {
			return nil, fmt.Errorf("line %d: id %q is there already; give each buffer its own", n, clip(id))
		}
		seen[id] = true
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(p.IDs) == 0 {
		return nil, fmt.Errorf("there are no buffers; write %s and a line for each", Header)
	}
	return p, nil
}

func clip(text string) string {
	if len(text) > 60 {
		return text[:60] + "..."
	}
	return text
}

func (p *Problem) add(line string) error {
	fields := strings.Split(line, ",")
	if len(fields) != 4 {
		return fmt.Errorf("%d fields instead of 4", len(fields))
	}
	for i := range fields {
		fields[i] = strings.TrimSpace(fields[i])
	}
	lower, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return fmt.Errorf("lower is %q, no whole number", clip(fields[1]))
	}
	upper, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		return fmt.Errorf("upper is %q, no whole number", clip(fields[2]))
	}
	size, err := strconv.ParseUint(fields[3], 10, 50)
	switch {
	case err != nil:
		return fmt.Errorf("size is %q, no number of bytes", clip(fields[3]))
	case upper <= lower:
		return fmt.Errorf("upper %d is not after lower %d", upper, lower)
	}
	p.IDs = append(p.IDs, fields[0])
	p.Buffers = append(p.Buffers, Buffer{lower, upper, size})
	return nil
}
