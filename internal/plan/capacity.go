package plan

import (
	"github.com/ashlar-mem/ashlar/internal/plan/cards"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/settings"
)

// Room is what there is for a job: a card, a cap, both or neither.
type Room struct {
	Card  *cards.Card // nil if none was named
	Limit uint64      // cap on reserved memory; 0 is none
}

// given tells whether there is anything to fit into.
func (r *Room) given() bool { return r.Card != nil || r.Limit > 0 }

// card is the one that was named, or the one that measurements are of.
func (r *Room) card() cards.Card {
	if r.Card != nil {
		return *r.Card
	}
	c, _ := cards.Find("h200")
	c.Context = cards.Estimate
	return c
}

// context is what the process holds of the device beside the allocator's memory
// and what communication takes.
func (r *Room) context() (bytes uint64, estimated bool) {
	c := r.card()
	return c.OutsideBytes, c.Context != cards.Measured
}

// collectives is what communication libraries hold for a job outside of the
// allocator.
func (r *Room) collectives(j *model.Job) uint64 {
	if !communicates(j) {
		return 0
	}
	n, _ := cards.NCCL()
	return n
}

// communicates tells whether a job has ranks to talk to. One rank alone counts:
// DDP and FSDP set the library up for it too.
func communicates(j *model.Job) bool { return j.Shard != (model.Shard{}) }

// outside is what the process holds beside the allocator's memory.
func (r *Room) outside(j *model.Job) uint64 {
	n, _ := r.context()
	return n + r.collectives(j)
}

// device is what the card has for the allocator of a job; 0 without a card.
func (r *Room) device(j *model.Job) uint64 {
	if r.Card == nil {
		return 0
	}
	return max(r.Card.TotalBytes-min(r.Card.TotalBytes, r.outside(j)), 1)
}

// available is the most that may be reserved; 0 if nothing bounds it.
func (r *Room) available(j *model.Job) uint64 {
	d := r.device(j)
	switch {
	case d == 0:
		return r.Limit
	case r.Limit == 0:
		return d
	}
	return min(d, r.Limit)
}

// conditions are those of a run in the room.
func (r *Room) conditions(s settings.Settings, j *model.Job) replay.Conditions {
	return replay.Conditions{Settings: s, Limit: r.Limit, DeviceMemory: r.device(j)}
}

// equip gives a job what it takes from the card.
func (r *Room) equip(j *model.Job) {
	c := r.card()
	j.Workspace, j.Capability = int64(c.WorkspaceBytes()), 10*c.Major+c.Minor
}
