package plan

import (
	"github.com/ashlar-mem/ashlar/replay"
	"github.com/ashlar-mem/ashlar/settings"
)

// Room is what there is for a job: a card, a cap, both or neither.
type Room struct {
	// Card is what the device is called, Total its memory as the driver reports
	// it; 0 if no card was named.
	Card  string
	Total uint64
	// Context is what the process holds of the device beside the allocator's
	// memory; Estimated if that was not measured on this card.
	Context   uint64
	Estimated bool
	// Collectives is what communication libraries hold beside that, if the job
	// communicates.
	Collectives uint64
	// Limit is the cap on reserved memory; 0 is none.
	Limit uint64
}

// given tells whether there is anything to fit into.
func (r *Room) given() bool { return r.Total > 0 || r.Limit > 0 }

// device is what the card has for the allocator of a job; 0 without a card.
func (r *Room) device(collectives bool) uint64 {
	if r.Total == 0 {
		return 0
	}
	outside := r.outside(collectives)
	return max(r.Total-min(r.Total, outside), 1)
}

// outside is what the process holds beside the allocator's memory.
func (r *Room) outside(collectives bool) uint64 {
	if collectives {
		return r.Context + r.Collectives
	}
	return r.Context
}

// available is the most that may be reserved; 0 if nothing bounds it.
func (r *Room) available(collectives bool) uint64 {
	d := r.device(collectives)
	switch {
	case d == 0:
		return r.Limit
	case r.Limit == 0:
		return d
	}
	return min(d, r.Limit)
}

// conditions are those of a run in the room.
func (r *Room) conditions(s settings.Settings, collectives bool) replay.Conditions {
	return replay.Conditions{Settings: s, Limit: r.Limit, DeviceMemory: r.device(collectives)}
}
