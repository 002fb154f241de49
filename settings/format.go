package settings

import "strings"

// String writes the settings in canonical form: only what differs from the
// defaults, in a fixed order of keys. The empty text stands for the defaults.
// Whatever [Parse] or [Settings.Apply] can return, Parse(s.String()) == s.
func (s Settings) String() string {
	var fields []string
	for i := range options {
		if value := options[i].format(s); value != "" {
			fields = append(fields, options[i].key+":"+value)
		}
	}
	return strings.Join(fields, ",")
}
