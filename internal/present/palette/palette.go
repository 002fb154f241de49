package palette

import (
	"fmt"
	"strings"
)

// RGB is a colour by its three parts.
type RGB [3]uint8

func (c RGB) String() string { return fmt.Sprintf("#%02x%02x%02x", c[0], c[1], c[2]) }

// Shade is a colour on a light and on a dark ground.
type Shade struct {
	Light RGB `json:"light"`
	Dark  RGB `json:"dark"`
}

// Name is what a colour stands for: a category of memory, or a finer kind that
// only a plan knows.
type Name struct {
	Name  string `json:"name"`
	Shade Shade  `json:"shade"`
}

// The grounds.
var (
	white = RGB{255, 255, 255}
	dark  = RGB{17, 21, 28}
)

// The strengths of a hue. Strong goes away from the ground, the others towards it.
const (
	plain = iota
	faint
	strong
	strengths
)

// Grey is the colour of what is unknown and of what is left over.
var Grey = Shade{RGB{176, 182, 190}, RGB{94, 102, 114}}

// Hues are the pure colours, for thin lines.
var Hues = []RGB{blue, orange, green, pink, sky, vermilion, olive}

var (
	blue      = RGB{0, 114, 178}
	orange    = RGB{230, 159, 0}
	green     = RGB{0, 158, 115}
	pink      = RGB{204, 121, 167}
	sky       = RGB{86, 180, 233}
	vermilion = RGB{213, 94, 0}
	olive     = RGB{153, 153, 51}
)

// Most is how many things without a colour of their own are told apart: call
// stacks, streams, pools. The others are grey.
const Most = 20

// Names lists what has a colour of its own: the categories of package findings,
// then the finer kinds of a plan, each in another shade of the category that it is
// closest to.
func Names() []Name {
	return []Name{
		{"parameters", shade(blue, plain)},
		{"gradients", shade(orange, plain)},
		{"optimizer state", shade(green, plain)},
		{"activations", shade(pink, plain)},
		{"temporaries", shade(sky, plain)},
		{"workspace", shade(vermilion, plain)},
		{"unknown", Grey},
		{"cache", shade(olive, plain)},
		{"master weights", shade(blue, faint)},
		{"weight casts", shade(blue, strong)},
		{"saved copies", shade(green, faint)},
		{"loss", shade(pink, faint)},
		{"inputs", shade(sky, faint)},
		{"buffers", shade(sky, strong)},
		{"collectives", shade(vermilion, faint)},
	}
}

// Ordinals returns the colours of things that have none of their own, all
// different.
func Ordinals() []Shade {
	out := make([]Shade, 0, Most)
	for i := range int(strengths) {
		for _, hue := range Hues {
			if len(out) < Most {
				out = append(out, shade(hue, i))
			}
		}
	}
	return out
}

// CSS returns the colours of [Names] as custom properties of a style sheet, such
// as --optimizer-state.
func CSS(ground func(Shade) RGB) string {
	var b strings.Builder
	for _, n := range Names() {
		fmt.Fprintf(&b, "--%s:%v;", strings.ReplaceAll(n.Name, " ", "-"), ground(n.Shade))
	}
	return b.String()
}

func shade(hue RGB, strength int) Shade {
	switch strength {
	case faint:
		return Shade{mix(hue, white, 0.55), mix(hue, dark, 0.55)}
	case strong:
		return Shade{mix(hue, dark, 0.35), mix(hue, white, 0.35)}
	}
	return Shade{mix(hue, white, 0.2), mix(hue, dark, 0.2)}
}

// mix returns a with a part of b in it.
func mix(a, b RGB, part float64) RGB {
	var out RGB
	for i := range out {
		out[i] = uint8(float64(a[i]) + (float64(b[i])-float64(a[i]))*part + 0.5)
	}
	return out
}
