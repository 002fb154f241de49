package stats

import "slices"

// FromValues returns the dump of a device whose values were read elsewhere, as
// those that a recorder keeps inside a snapshot.
func FromValues(device int, values map[string]int64) *Dump {
	d := newDump(Recorded)
	d.Device, d.Exact = device, true
	for key, n := range values {
		if known(key) {
			d.Values[key] = n
			continue
		}
		d.Unknown = append(d.Unknown, key)
		d.Extra[key] = n
	}
	slices.Sort(d.Unknown)
	d.finish()
	return d
}
