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

// collectives returns what communication libraries hold outside the allocator.
func (c *Capacity) collectives(communicates bool) uint64 {
	if !communicates {
		return 0
	}
	n, _ := cards.NCCL()
	return n
}

// communicates reports whether a job uses a communication library. DDP and FSDP
// set it up even for a single rank.
func communicates(j *model.Job) bool { return j.Shard != (model.Shard{}) }

// outside returns what the process holds outside the allocator.
func (c *Capacity) outside(communicates bool) uint64 {
	n, _ := c.context()
	return n + c.collectives(communicates)
}

// device returns what the card has for the allocator; 0 without a card.
func (c *Capacity) device(communicates bool) uint64 {
	if c.Card == nil {
		return 0
	}
	return max(c.Card.TotalBytes-min(c.Card.TotalBytes, c.outside(communicates)), 1)
}

// available returns the most that may be reserved; 0 if nothing bounds it.
func (c *Capacity) available(communicates bool) uint64 {
	d := c.device(communicates)
	switch {
	case d == 0:
		return c.Limit
	case c.Limit == 0:
		return d
	}
	return min(d, c.Limit)
}

// conditions returns the conditions of a run within the capacity.
func (c *Capacity) conditions(s settings.Settings, communicates bool) replay.Conditions {
	return replay.Conditions{Settings: s, Limit: c.Limit, DeviceMemory: c.device(communicates)}
}

// equip sets the properties of a job that depend on the card.
func (c *Capacity) equip(j *model.Job) {
	card := c.card()
	j.Workspace, j.Capability = int64(card.WorkspaceBytes()), 10*card.Major+card.Minor
}
