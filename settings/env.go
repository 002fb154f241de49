package settings

import (
	"strconv"
	"strings"
)

// Variable is where PyTorch reads its allocator settings from.
const Variable = "PYTORCH_CUDA_ALLOC_CONF"

// Variables are the names of the environment variables that PyTorch looks at,
// in that order (spec 11.1).
var Variables = [...]string{Variable, "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_ALLOC_CONF"}

// FromEnv returns the text that PyTorch would read and the variable it stands
// in: the first one that is set, even if it is empty. Both are empty if none is
// set. lookup is os.LookupEnv or a stand-in.
//
// On NVIDIA, PyTorch takes only the keys it shares with other devices from
// PYTORCH_HIP_ALLOC_CONF: those down to pinned_use_background_threads in the
// order of [Settings.String].
func FromEnv(lookup func(string) (string, bool)) (conf, variable string) {
	for _, name := range Variables {
		if conf, ok := lookup(name); ok {
			return conf, name
		}
	}
	return "", ""
}

// Export is the line of a shell that puts the settings into force.
func (s Settings) Export() string { return s.ExportAs(Variable) }

// ExportAs is [Settings.Export] with another variable: those of other devices
// have names of their own.
func (s Settings) ExportAs(variable string) string {
	text := s.String()
	if text == "" {
		return "unset " + variable
	}
	return "export " + variable + "=" + Quoted(text)
}

// Quoted returns a text of settings as a shell takes it.
func Quoted(text string) string {
	if strings.ContainsAny(text, "[]>*") { // which it would read as a pattern or a file
		return strconv.Quote(text)
	}
	return text
}
