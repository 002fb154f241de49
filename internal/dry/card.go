package dry

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/plan/cards"
)

// Card returns the card that the script was told it has; nil if the header names
// none.
func (h *Header) Card() *cards.Card {
	d := &h.Device
	if d.Total <= 0 {
		return nil
	}
	c, ok := cards.Find(d.Name)
	if !ok {
		var err error
		if c, err = cards.Parse(fmt.Sprintf("%dMiB", max(d.Total>>20, 256))); err != nil {
			return nil
		}
		c.Taken = ""
		if c.Title = d.Name; c.Title == "" {
			c.Title = "the GPU of the dry run"
		}
	}
	c.TotalBytes, c.Total = uint64(d.Total), cards.Given
	if len(d.Capability) == 2 {
		c.Major, c.Minor = d.Capability[0], d.Capability[1]
	}
	return &c
}
