package view

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/findings"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// maxLegend is how many colours a legend names.
const maxLegend = 40

// legendEntry is what one colour stands for at a moment.
type legendEntry struct {
	Colour uint32 `json:"colour"`
	Label  string `json:"label"`
	Bytes  uint64 `json:"bytes"`
	Blocks int    `json:"blocks"`

	life int32 // one of them
}

// legend is what the colours stand for at a moment.
type legend struct {
	Color   string        `json:"color"`
	Event   int           `json:"event"`
	Entries []legendEntry `json:"entries"`
	Total   uint64        `json:"total_bytes"`
	Others  uint64        `json:"others_bytes"`
}

// legend is api/legend.
func (r *request) legend() error {
	by, event := r.query.choice("color", colourings...), r.moment()
	if r.query.err != nil {
		return r.query.err
	}
	paint, lives := r.run.painter(r.run.blocks(), by), r.run.lives
	at := map[uint32]int{}
	var all []legendEntry
	total := uint64(0)
	for _, i := range lives.Alive(nil, event) {
		colour := paint(i)
		k, ok := at[colour]
		if !ok {
			k = len(all)
			at[colour] = k
			all = append(all, legendEntry{Colour: colour, life: i})
		}
		all[k].Bytes += lives.Size[i]
		all[k].Blocks++
		total += lives.Size[i]
	}
	slices.SortStableFunc(all, func(x, y legendEntry) int { return cmp.Compare(y.Bytes, x.Bytes) })
	others := uint64(0)
	for i := range all {
		if i < maxLegend {
			all[i].Label = r.run.colourLabel(by, &all[i])
		} else {
			others += all[i].Bytes
		}
	}
	return r.json(legend{by, event, append([]legendEntry{}, all[:min(len(all), maxLegend)]...), total, others})
}

// colourLabel says in words what a colour stands for.
func (r *pageRun) colourLabel(by string, e *legendEntry) string {
	if e.Colour == colourOthers && by != "size" && by != colourByLife {
		return "others"
	}
	switch by {
	case "size":
		return units.Size(1<<e.Colour) + " to " + units.Size(2<<e.Colour)
	case "stream":
		return fmt.Sprintf("stream %d", r.lives.Stream(int(e.life)))
	case "pool":
		switch p := r.lives.Pool(int(e.life)); {
		case p == timeline.NoPoolKnown:
			return "pool not known"
		case r.lives.Pools[p] == alloc.PoolID{}:
			return "pool default"
		default:
			return fmt.Sprintf("pool %d,%d", r.lives.Pools[p].First, r.lives.Pools[p].Second)
		}
	case colourByCategory:
		return string(findings.Categories()[e.Colour])
	case colourByLife:
		if e.Colour == lifeForever {
			return "never freed"
		}
		if e.Colour == 0 {
			return "0 events"
		}
		return units.Count(1<<e.Colour-1) + " to " + units.Count(2<<e.Colour-2) + " events"
	}
	return r.site(r.lives.Stack(int(e.life)))
}
