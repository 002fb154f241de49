package plan

import (
	"github.com/ashlar-mem/ashlar/internal/plan/cards"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/internal/plan/problem"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/settings"
)

// Capacity is the memory that a job may use: a card, a limit, both or neither.
type Capacity struct {
	Card  *cards.Card // nil if none was named
	Limit uint64      // on reserved memory; 0 is none
}

// Assumed says how a card's name was understood that does not mean one card.
func (c *Capacity) Assumed() []string {
	if c.Card == nil || c.Card.Taken == "" {
		return nil
	}
	return []string{"--gpu " + c.Card.Name + ": " + c.Card.Taken}
}

// Fraction makes a memory fraction in the settings a limit, as a part of the
// card's total.
func (c *Capacity) Fraction(s *settings.Settings) error {
	f := s.PerProcessMemoryFraction
	if f >= 1 {
		return nil
	}
	if c.Card == nil {
		return problem.New("{settings} per_process_memory_fraction is a part of a card: give {gpu}")
	}
	part := max(uint64(f*float64(c.Card.TotalBytes)), 1)
	if c.Limit == 0 || part < c.Limit {
		c.Limit = part
	}
	s.PerProcessMemoryFraction = 1
	return nil
}

// given reports whether there is a card or a limit.
func (c *Capacity) given() bool { return c.Card != nil || c.Limit > 0 }

// card returns the card that was named, or the one that was measured.
func (c *Capacity) card() cards.Card {
	if c.Card != nil {
		return *c.Card
	}
	card, _ := cards.Find("h200")
	card.Context = cards.Estimate
	return card
}

// context returns what the process holds on the device, without the allocator's
// memory and that of communication libraries.
func (c *Capacity) context() (bytes uint64, estimated bool) {
	card := c.card()
	return card.OutsideBytes, card.Context != cards.Measured
}

// Group are the ranks that a job communicates with through a library, which
// holds memory of its own; none if there are no Ranks.
type Group struct {
	Ranks    int
	Exchange bool // each sends to each, as experts on other ranks need it
}

// groupOf returns the ranks of a job. DDP and FSDP set a library up even for a
// single one.
func groupOf(j *model.Job) Group {
	s := j.Shard
	if s == (model.Shard{}) {
		return Group{}
	}
	n := 1
	for _, ranks := range []int{max(s.DDP, s.FSDP, s.Zero), s.Tensor, s.Pipeline, s.Context, s.Expert} {
		n *= max(ranks, 1)
	}
	return Group{Ranks: n, Exchange: s.Expert > 1}
}

// collectives returns what communication libraries hold outside the allocator,
// and what they may hold at most.
func (c *Capacity) collectives(g Group) (bytes, most uint64) {
	if g.Ranks == 0 {
		return 0, 0
	}
	bytes, most, _ = cards.NCCL(g.Ranks, g.Exchange)
	return bytes, most
}

// outside returns what the process holds outside the allocator.
func (c *Capacity) outside(g Group) uint64 {
	n, _ := c.context()
	held, _ := c.collectives(g)
	return n + held
}

// device returns what the card has for the allocator; 0 without a card.
func (c *Capacity) device(g Group) uint64 {
	if c.Card == nil {
		return 0
	}
	return max(c.Card.TotalBytes-min(c.Card.TotalBytes, c.outside(g)), 1)
}

// available returns the most that may be reserved; 0 if nothing bounds it.
func (c *Capacity) available(g Group) uint64 {
	d := c.device(g)
	switch {
	case d == 0:
		return c.Limit
	case c.Limit == 0:
		return d
	}
	return min(d, c.Limit)
}

// conditions returns the conditions of a run within the capacity.
func (c *Capacity) conditions(s settings.Settings, g Group) replay.Conditions {
	return replay.Conditions{Settings: s, Limit: c.Limit, DeviceMemory: c.device(g)}
}

// equip sets the properties of a job that depend on the card.
func (c *Capacity) equip(j *model.Job) {
	card := c.card()
	j.Workspace, j.Capability = int64(card.WorkspaceBytes()), 10*card.Major+card.Minor
}
