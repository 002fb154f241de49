package settings

import (
	"strconv"
	"strings"
)

// Variable is where PyTorch reads its allocator settings from.
const Variable = "PYTORCH_CUDA_ALLOC_CONF"

// Export is the line of a shell that puts the settings into force.
func (s Settings) Export() string {
	text := s.String()
	if text == "" {
		return "unset " + Variable
	}
	if strings.ContainsAny(text, "[]>*") { // which a shell would read as a pattern or a file
		text = strconv.Quote(text)
	}
	return "export " + Variable + "=" + text
}
