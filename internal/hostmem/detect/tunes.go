package detect

// Tunes names the allocator that an environment variable is read by; empty if
// none is.
func Tunes(name, value string) string {
	switch family := familyOf(name, value); family {
	case familyPython, familyPreload, Go:
		return ""
	default:
		return family
	}
}
