package cards

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
)

//go:embed cards.json
var cardsJSON []byte

// file is cards.json.
type file struct {
	Estimate struct {
		Context uint64 `json:"context_bytes"`
		Outside uint64 `json:"outside_bytes"`
		Source  string `json:"source"`
	} `json:"context_estimate"`
	NCCL []struct {
		Ranks  int    `json:"ranks"` // at least
		Bytes  uint64 `json:"bytes"`
		Most   uint64 `json:"most"` // what others have seen
		Source string `json:"source"`
	} `json:"nccl"` // by ranks, the fewest first
	Exchange struct {
		Bytes  uint64 `json:"bytes"` // for each of at most Peers
		Peers  int    `json:"peers"`
		Source string `json:"source"`
	} `json:"nccl_exchange"`
	MIG   []migTable `json:"mig"`
	Cards []row      `json:"cards"`
}

type row struct {
	Card
	Capability string `json:"capability"`
}

// table reads cards.json once. The file is part of the program, so a fault in it
// is a bug, which TestTable finds.
var table = sync.OnceValue(func() file {
	var f file
	if err := json.Unmarshal(cardsJSON, &f); err != nil {
		panic("gpu: cards.json: " + err.Error())
	}
	for i := range f.Cards {
		c := &f.Cards[i]
		if _, err := fmt.Sscanf(c.Capability, "%d.%d", &c.Major, &c.Minor); err != nil {
			panic("gpu: cards.json: " + c.Name + ": capability: " + err.Error())
		}
		if c.Context == "" {
			c.setEstimate(f)
		}
	}
	return f
})

// setEstimate gives a card the figures of the one that was measured.
func (c *Card) setEstimate(f file) {
	c.ContextBytes, c.OutsideBytes = f.Estimate.Context, f.Estimate.Outside
	c.Context, c.ContextSource = Estimate, f.Estimate.Source
}

// NCCL is what a communicator of some ranks takes outside PyTorch's allocator,
// what it may take at most, and where the figures are from. An exchange among
// all of them, as experts need it, takes buffers for each peer on top.
func NCCL(ranks int, exchange bool) (bytes, most uint64, source string) {
	for _, n := range table().NCCL {
		if ranks >= n.Ranks {
			bytes, most, source = n.Bytes, n.Most, n.Source
		}
	}
	if x := table().Exchange; exchange && ranks > 1 {
		more := x.Bytes * uint64(min(ranks-1, x.Peers))
		bytes, most, source = bytes+more, most+more, source+"; "+x.Source
	}
	return bytes, most, source
}

// List returns all cards.
func List() []Card {
	rows := table().Cards
	out := make([]Card, len(rows))
	for i, r := range rows {
		out[i] = r.Card
		out[i].Aliases = slices.Clone(r.Aliases)
	}
	return out
}

// Find returns the card of a name: its own, an alias or its title, in any case
// and with or without blanks, hyphens, makers' prefixes and the size that it is
// sold with.
func Find(name string) (Card, bool) {
	want := plain(name)
	if want == "" {
		return Card{}, false
	}
	for _, c := range List() {
		for _, n := range c.names() {
			if p := plain(n); p == want || p+fmt.Sprint(c.SoldGB) == want {
				return c, true
			}
		}
	}
	return Card{}, false
}

func (c Card) names() []string { return append([]string{c.Name, c.Title}, c.Aliases...) }

// plain reduces a name to what distinguishes cards: "NVIDIA GeForce RTX 4090",
// "rtx-4090" and "4090" are one.
func plain(name string) string {
	s := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return -1
	}, name)
	for _, prefix := range []string{"nvidia", "amd", "intel", "instinct", "radeon", "tesla", "quadro", "geforce", "rtx"} {
		s = strings.TrimPrefix(s, prefix)
	}
	return strings.TrimSuffix(s, "gb")
}

// UnknownError is a name that is not in the table.
type UnknownError struct {
	Name string
	Near []string // names that are like it, best first
}

func (e *UnknownError) Error() string {
	if len(e.Near) > 0 {
		return fmt.Sprintf("gpu %q is not known; did you mean %s? Or give its memory, such as 80GB", e.Name, strings.Join(e.Near, ", "))
	}
	var names []string
	for _, c := range List() {
		names = append(names, c.Name)
	}
	return fmt.Sprintf("gpu %q is not known; give its memory, such as 80GB, or one of %s", e.Name, strings.Join(names, ", "))
}
