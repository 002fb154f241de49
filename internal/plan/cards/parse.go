package cards

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/units"
)

// minTotal is the smallest size that is taken for a card. A bare "3050" is more
// likely a name than a number of bytes.
const minTotal = 256 << 20

// Parse reads what --gpu takes: the name of a card, of a family such as a100, or
// a size. Of several cards it takes the one with the least memory for PyTorch, and
// [Card.Taken] says so.
//
// A size in GB is the one that cards are sold with: 24GB is a card of 24 GB, of
// which a program sees 22 to 23.5 GiB. A size in GiB, or in GB that no card is
// sold with, is what the driver reports. Of such a card nothing else is known: its
// compute capability is taken to be 9.0 and its context to be the H200's.
func Parse(text string) (Card, error) {
	if c, ok := ofFamily(text); ok {
		return c, nil
	}
	if c, ok := Find(text); ok {
		return c, nil
	}
	if gb, ok := soldSize(text); ok {
		if c, ok := sold(text, gb); ok {
			return c, nil
		}
	}
	if n, one, ok := several(text); ok {
		if _, known := Find(one); known {
			return Card{}, fmt.Errorf("gpu %q: a plan is of one GPU; write --gpu %s, and --shard ddp:%s, fsdp:%s or zero3:%s for how %s share the job", text, one, n, n, n, n)
		}
	}
	if size, err := units.Parse(text); err == nil && size >= minTotal {
		c := Card{
			Name: strings.TrimSpace(text), Title: "a GPU of " + units.Size(size), TotalBytes: size, Total: Given,
			TotalSource: "as given", Major: 9,
		}
		c.Taken = givenText(c.Name, size)
		c.setEstimate(table())
		return c, nil
	}
	size, negative := strings.CutPrefix(strings.TrimSpace(text), "-")
	if n, err := units.Parse(size); err == nil && (negative || n == 0) {
		return Card{}, fmt.Errorf("%q: a card's memory must be more than nothing, such as 80GB", text)
	}
	return Card{}, &UnknownError{Name: text, Near: near(text)}
}

// ofFamily returns the card of a family that has the least for PyTorch.
func ofFamily(text string) (Card, bool) {
	want := plain(text)
	all := matching(func(c Card) bool { return c.Family != "" && plain(c.Family) == want })
	if len(all) == 0 {
		return Card{}, false
	}
	c := all[0]
	c.Taken = fmt.Sprintf("%s is sold in several sizes (%s): planned for the one with the least memory", strings.TrimSpace(text), names(all))
	return c, true
}

var sizeGB = regexp.MustCompile(`(?i)^\s*(\d+)\s*(gb?)?\s*$`)

// soldSize reads 24GB, 24G or 24.
func soldSize(text string) (gb int, ok bool) {
	m := sizeGB.FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	gb, err := strconv.Atoi(m[1])
	return gb, err == nil
}

// sold returns the card with the least for PyTorch among NVIDIA's of a size, or
// else among all.
func sold(text string, gb int) (Card, bool) {
	all := matching(func(c Card) bool { return c.SoldGB == gb && c.Vendor == "" })
	if len(all) == 0 {
		all = matching(func(c Card) bool { return c.SoldGB == gb })
	}
	if len(all) == 0 {
		return Card{}, false
	}
	c := all[0]
	c.Taken = fmt.Sprintf("%s is the size that cards are sold with (%s)", strings.TrimSpace(text), names(all))
	if len(all) > 1 {
		c.Taken += ": planned for the one with the least memory"
	}
	c.Taken += fmt.Sprintf("; for %d GiB exactly write %dGiB", gb, gb)
	return c, true
}

// givenText says which unit was meant.
func givenText(text string, size uint64) string {
	said := text + " is taken as what the driver reports"
	if gb := (size + 1<<29) >> 30; gb<<30 == size {
		if all := matching(func(c Card) bool { return uint64(c.SoldGB) == gb }); len(all) > 0 {
			return said + fmt.Sprintf("; cards sold with %d GB report %s to %s: write %dGB for them", gb, units.Size(all[0].TotalBytes), units.Size(all[len(all)-1].TotalBytes), gb)
		}
	}
	if strings.HasSuffix(strings.ToLower(text), "gb") {
		return said + ", " + units.Size(size) + "; no card in the table is sold with that size"
	}
	return said
}

// matching returns the cards of which something holds, those with the least for
// PyTorch first.
func matching(holds func(Card) bool) []Card {
	all := slices.DeleteFunc(List(), func(c Card) bool { return !holds(c) })
	slices.SortStableFunc(all, func(a, b Card) int { return int(int64(a.AvailableBytes()) - int64(b.AvailableBytes())) })
	return all
}

func names(all []Card) string {
	var out []string
	for _, c := range all {
		out = append(out, c.Name)
	}
	return strings.Join(out, ", ")
}

var count = regexp.MustCompile(`(?i)^\s*(\d+)\s*[x*]\s*(\S.*?)\s*$`)

// several reads 8xh100.
func several(text string) (n, card string, ok bool) {
	if m := count.FindStringSubmatch(text); m != nil {
		return m[1], m[2], true
	}
	return "", "", false
}
