package stats

import (
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/snapshot/message"
)

// Message is what an out-of-memory message says.
type Message struct {
	Line      int     `json:"line"`
	Version   *string `json:"version"`
	Backend   string  `json:"backend"`
	Platform  *string `json:"platform"`
	Library   *string `json:"library"`
	Exception *string `json:"exception"`
	Device    *int    `json:"device"`

	Tried       *units.Range `json:"tried_bytes"`
	Total       *units.Range `json:"total_bytes"`
	Free        *units.Range `json:"free_bytes"`
	Limit       *units.Range `json:"limit_bytes"`
	Allocated   *units.Range `json:"allocated_bytes"`
	Active      *units.Range `json:"active_bytes"`
	Reserved    *units.Range `json:"reserved_bytes"`
	Unallocated *units.Range `json:"reserved_unallocated_bytes"`
	PrivatePool *units.Range `json:"private_pool_free_bytes"`
	// ReservedComputed says that the message gives only the parts.
	ReservedComputed    bool `json:"reserved_computed"`
	UnallocatedComputed bool `json:"reserved_unallocated_computed"`

	Processes []Process `json:"processes"`
	Advice    *string   `json:"advice"`

	ReservedUnallocated *Share `json:"reserved_unallocated"`
}

// Process is a process that holds memory on the device.
type Process struct {
	PID   *int        `json:"pid"`
	Self  bool        `json:"self"`
	Bytes units.Range `json:"used_bytes"`
}

// NewMessage collects the facts of a message.
func NewMessage(o *message.OOM) *Message {
	m := &Message{
		Line: o.Line, Version: text(o.Version), Backend: o.Backend, Platform: text(o.Platform), Library: text(o.Library),
		Exception: text(o.Exception), Advice: text(o.Advice), Processes: []Process{},
		Tried: o.TriedBytes, Total: o.TotalBytes, Free: o.FreeBytes, Limit: o.LimitBytes,
		Allocated: o.AllocatedBytes, Active: o.ActiveBytes, PrivatePool: o.PrivatePoolBytes,
		ReservedComputed: o.ReservedBytes == nil, UnallocatedComputed: o.ReservedUnallocatedBytes == nil,
	}
	if o.Device >= 0 {
		m.Device = &o.Device
	}
	if r, ok := o.Reserved(); ok {
		m.Reserved = &r
	}
	if r, ok := o.Unallocated(); ok {
		m.Unallocated = &r
	}
	m.ReservedComputed = m.ReservedComputed && m.Reserved != nil
	m.UnallocatedComputed = m.UnallocatedComputed && m.Unallocated != nil
	if m.Reserved != nil && m.Unallocated != nil {
		m.ReservedUnallocated = share(*m.Reserved, *m.Unallocated, false)
	}
	for _, p := range o.Processes {
		out := Process{Self: p.Self, Bytes: p.Bytes}
		if p.PID != 0 {
			pid := p.PID
			out.PID = &pid
		}
		m.Processes = append(m.Processes, out)
	}
	return m
}
