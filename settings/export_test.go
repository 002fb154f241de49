package settings

// Names are all keys and their aliases.
func Names() []string {
	var names []string
	for i := range options {
		names = append(names, options[i].names()...)
	}
	return names
}
