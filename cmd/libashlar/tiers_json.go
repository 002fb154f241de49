package main

import (
	"encoding/json"
	"strings"

	"github.com/ashlar-mem/ashlar/alloc/tier"
)

// tierStats are the figures of tiers in ashlar_stats_json, under "ashlar".
type tierStats struct {
	HostBytes     uint64  `json:"host_bytes"`      // behind addresses
	KeptBytes     uint64  `json:"host_kept_bytes"` // of the host, kept for the next move
	DroppedBytes  uint64  `json:"dropped_bytes"`
	Overflows     uint64  `json:"overflows"`
	Moves         uint64  `json:"moves"`
	MovedOutBytes uint64  `json:"moved_out_bytes"`
	MovedInBytes  uint64  `json:"moved_in_bytes"`
	Seconds       float64 `json:"move_seconds"`
}

func newTierStats(s tier.Stats) tierStats {
	return tierStats{s.Host, s.Kept, s.Dropped, s.Overflows, s.Moves, s.BytesOut, s.BytesIn, s.Time.Seconds()}
}

// tierStats are those of a device with all its slots, or of a slot; zeros where
// nothing can move.
func (d *device) tierStats(all bool) tierStats {
	switch {
	case d.mover == nil:
		return tierStats{}
	case all:
		return newTierStats(d.mover.store.Stats())
	}
	return newTierStats(d.space.Stats())
}

// reportJSON is what a call has moved, as ashlar_park and its like tell it.
type reportJSON struct {
	FreedBytes   uint64  `json:"freed_bytes"` // of the device
	OutBytes     uint64  `json:"out_bytes"`
	InBytes      uint64  `json:"in_bytes"`
	DroppedBytes uint64  `json:"dropped_bytes"`
	SharedBytes  uint64  `json:"shared_bytes"` // stayed: others have blocks in the same handles
	PinnedBytes  uint64  `json:"pinned_bytes"`
	PrivateBytes uint64  `json:"private_bytes"`
	PlainBytes   uint64  `json:"plain_bytes"`
	Seconds      float64 `json:"seconds"`
}

func reportText(r tier.Report) string {
	text, err := json.Marshal(reportJSON{
		r.Freed, r.Out, r.In, r.Dropped, r.Shared, r.Pinned, r.Private, r.Plain, r.Time.Seconds(),
	})
	if err != nil {
		panic(err) // numbers only
	}
	return string(text)
}

// tiersJSON is the document of ashlar_tiers_json.
type tiersJSON struct {
	HostLimitBytes uint64       `json:"host_limit_bytes"`
	HostBytes      uint64       `json:"host_bytes"` // taken, with what is kept
	HostUsedBytes  uint64       `json:"host_used_bytes"`
	OverflowBytes  uint64       `json:"overflow_bytes"`
	Capturing      int64        `json:"capturing"` // graphs that are being captured now
	Captures       int64        `json:"captures"`  // graphs whose capture was begun so far
	Regions        []regionJSON `json:"regions"`
}

type regionJSON struct {
	Name        string `json:"name"`
	DeviceBytes uint64 `json:"device_bytes"`
	Dropped     bool   `json:"dropped"`
	tierStats
}

func (l *library) tiersJSON(n int) (string, error) {
	first, err := l.movable(n)
	if err != nil {
		return "", err
	}
	all, err := l.ofDevice(n)
	if err != nil {
		return "", err
	}
	l.mu.Lock()
	overflow := l.cfg.overflow()
	l.mu.Unlock()
	doc := tiersJSON{
		HostLimitBytes: first.mover.store.HostLimit(), HostBytes: first.mover.store.HostBytes(), HostUsedBytes: first.mover.store.HostInUse(),
		OverflowBytes: overflow, Capturing: l.recording.Load(), Captures: l.captured.Load(), Regions: []regionJSON{},
	}
	for _, d := range all {
		if name, ok := strings.CutPrefix(d.tenant.Name(), regionPrefix); ok {
			s := d.space.Stats()
			doc.Regions = append(doc.Regions, regionJSON{name, s.Device, d.dropped.Load(), newTierStats(s)})
		}
	}
	text, err := json.Marshal(doc)
	return string(text), err
}
