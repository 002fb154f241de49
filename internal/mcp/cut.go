package mcp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// Cut is a list that is not shown whole. Documents have them in their field "cut".
type Cut struct {
	List  string `json:"list"`
	Shown int    `json:"shown"`
	Of    int    `json:"of"`
}

// How much an answer has, unless more is asked for, and at most.
const (
	defaultItems = 20
	leastItems   = 5
	mostItems    = 10_000

	usualDocument, usualText = 48 << 10, 16 << 10
	mostDocument, mostText   = 4 << 20, 256 << 10
)

// limits are how much of an answer is shown.
type limits struct{ items, document, text int }

// limitsOf is what the argument max_items asks for; 0 if it is not given.
func limitsOf(items int) (limits, error) {
	switch {
	case items == 0:
		return limits{defaultItems, usualDocument, usualText}, nil
	case items < leastItems || items > mostItems:
		return limits{}, fmt.Errorf("max_items is %d: give a number from %d to %d", items, leastItems, mostItems)
	}
	return limits{items, mostDocument, mostText}, nil
}

// shorten cuts the lists of a document, further than asked for if it would
// be too long otherwise.
func (l limits) shorten(document []byte) ([]byte, []Cut, error) {
	for items := l.items; ; items = max(leastItems, items/2) {
		c := cutter{items: items, dec: json.NewDecoder(bytes.NewReader(document)), lists: map[string]int{}}
		c.dec.UseNumber()
		if err := c.value(""); err != nil {
			return nil, nil, err
		}
		cuts := c.cuts()
		out := c.out.Bytes()
		if len(cuts) > 0 {
			said, err := json.Marshal(cuts)
			if err != nil {
				return nil, nil, err
			}
			out = fmt.Appendf(bytes.TrimSuffix(out, []byte("}")), `,"cut":%s}`, said)
		}
		switch {
		case len(out) <= l.document || items == leastItems && len(out) <= mostDocument:
			return out, cuts, nil
		case items == leastItems:
			return nil, nil, fmt.Errorf("the answer has %d KiB with %d entries of every list, and %d KiB is the most; ask about less, or use the command line", len(out)>>10, items, mostDocument>>10)
		}
	}
}

// cutter copies a document with fewer entries in its lists, and keeps the order
// of its fields.
type cutter struct {
	items int
	dec   *json.Decoder
	out   bytes.Buffer
	lists map[string]int // how long those were that are cut
}

func (c *cutter) value(path string) error {
	t, err := c.dec.Token()
	if err != nil {
		return err
	}
	switch t {
	case json.Delim('{'):
		return c.object(path)
	case json.Delim('['):
		return c.list(path)
	}
	return c.plain(t)
}

func (c *cutter) plain(v any) error {
	text, err := json.Marshal(v)
	c.out.Write(text)
	return err
}

func (c *cutter) object(path string) error {
	c.out.WriteByte('{')
	for first := true; c.dec.More(); first = false {
		key, err := c.dec.Token()
		if err != nil {
			return err
		}
		if !first {
			c.out.WriteByte(',')
		}
		if err := c.plain(key); err != nil {
			return err
		}
		c.out.WriteByte(':')
		if err := c.value(strings.TrimPrefix(fmt.Sprintf("%s.%s", path, key), ".")); err != nil {
			return err
		}
	}
	c.out.WriteByte('}')
	_, err := c.dec.Token()
	return err
}

func (c *cutter) list(path string) error {
	c.out.WriteByte('[')
	n := 0
	for ; c.dec.More(); n++ {
		if n >= c.items {
			var skipped json.RawMessage
			if err := c.dec.Decode(&skipped); err != nil {
				return err
			}
			continue
		}
		if n > 0 {
			c.out.WriteByte(',')
		}
		if err := c.value(path + "[]"); err != nil {
			return err
		}
	}
	if n > c.items {
		c.lists[path] = max(c.lists[path], n)
	}
	c.out.WriteByte(']')
	_, err := c.dec.Token()
	return err
}

func (c *cutter) cuts() []Cut {
	var out []Cut
	for list, n := range maps.All(c.lists) {
		out = append(out, Cut{list, c.items, n})
	}
	slices.SortFunc(out, func(a, b Cut) int { return cmp.Compare(a.List, b.List) })
	return out
}

// shortenText keeps the first lines of a text.
func (l limits) shortenText(text string) string {
	if len(text) <= l.text {
		return text
	}
	kept := text[:l.text]
	if end := strings.LastIndexByte(kept, '\n'); end >= 0 {
		kept = kept[:end+1]
	}
	for !utf8.ValidString(kept) {
		kept = kept[:len(kept)-1]
	}
	return fmt.Sprintf("%s\n(%d more lines: give max_items to see them)\n", kept, strings.Count(text[len(kept):], "\n"))
}

// cutText says what is not in a document.
func cutText(cuts []Cut) string {
	if len(cuts) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\nNot all is in the document; give max_items to see more:\n")
	for _, c := range cuts {
		fmt.Fprintf(&b, "  %s: %d of %d\n", c.List, c.Shown, c.Of)
	}
	return b.String()
}
