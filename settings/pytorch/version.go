package pytorch

import (
	"fmt"
	"strconv"
	"strings"
)

// Version is a release of PyTorch without its patch number, such as 2.11. Later
// releases compare greater. The zero value is none.
type Version uint16

// Of returns the version major.minor.
func Of(major, minor int) Version { return Version(major*100 + minor) }

// The releases whose allocators are modelled, and the one whose rules hold where
// nothing else is known.
const (
	Oldest  Version = 200
	Default Version = 211
	Newest  Version = 213
)

// Parse returns the version that a text begins with: "2.7", "2.7.1" or
// "2.11.0+cu130".
func Parse(text string) (Version, error) {
	major, rest, _ := strings.Cut(strings.TrimPrefix(text, "v"), ".")
	minor := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
	x, err := strconv.ParseUint(major, 10, 7)
	y, err2 := strconv.ParseUint(minor, 10, 64)
	if err != nil || err2 != nil || x == 0 || y > 99 {
		return 0, fmt.Errorf("%q is no version of PyTorch: write it as in 2.7", text)
	}
	return Of(int(x), int(y)), nil
}

func (v Version) String() string { return fmt.Sprintf("%d.%d", v/100, v%100) }

// MarshalText writes the version as in "2.7", and none as an empty text.
func (v Version) MarshalText() ([]byte, error) {
	if v == 0 {
		return nil, nil
	}
	return []byte(v.String()), nil
}

// UnmarshalText is the inverse of MarshalText.
func (v *Version) UnmarshalText(text []byte) (err error) {
	*v = 0
	if len(text) > 0 {
		*v, err = Parse(string(text))
	}
	return err
}

// Range are the versions from First to Last, both included. The zero value
// stands for an unknown version. A range that ends with [Newest] includes what
// comes after it.
type Range struct {
	First Version `json:"first"`
	Last  Version `json:"last"`
}

// Exactly returns the range that has one version.
func Exactly(v Version) Range { return Range{v, v} }

// Known reports whether the range tells anything.
func (r Range) Known() bool { return r.First != 0 }

// Exact returns the version of a range that has only one.
func (r Range) Exact() (v Version, ok bool) { return r.First, r.Known() && r.First == r.Last }

// Has reports whether a version is in the range.
func (r Range) Has(v Version) bool { return r.First <= v && v <= r.Last }

// Since reports whether everything in the range is v or later: whether a key that
// v introduced is sure to be known. It is false for an unknown range.
func (r Range) Since(v Version) bool { return r.Known() && r.First >= v }

// Before reports whether everything in the range is earlier than v: whether a key
// that v introduced is sure to be refused. It is false for an unknown range.
func (r Range) Before(v Version) bool { return r.Known() && r.Last < v }

// Assumed returns the version to take if one must be taken: [Default], or what is
// nearest to it in the range.
func (r Range) Assumed() Version {
	if !r.Known() {
		return Default
	}
	return max(r.First, min(Default, r.Last))
}

// Versions lists what is in the range, oldest first.
func (r Range) Versions() []Version {
	var all []Version
	for v := r.First; r.Known() && v <= r.Last; v++ {
		all = append(all, v)
	}
	return all
}

func (r Range) String() string {
	v, exact := r.Exact()
	switch {
	case !r.Known():
		return "unknown"
	case r.Last >= Newest && r.First < Newest:
		return r.First.String() + " or later"
	case exact:
		return v.String()
	default:
		return fmt.Sprintf("%v to %v", r.First, r.Last)
	}
}
