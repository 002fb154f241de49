// Package yaml reads the part of YAML that configuration files use: mappings and
// lists in blocks or in brackets, quoted and plain scalars, literal and folded
// texts, comments. Anchors, aliases, tags, merge keys and several documents in a
// file are errors. JSON is read into the same values.
//
// Every value has the line that it begins on, and so has every error.
package yaml
