package version

import (
	"runtime"
	"runtime/debug"
	"strings"
)

// Text is the version of the sources. cmd/libashlar has it once more, in C, where a
// forked child may ask for it; a test there compares them.
const Text = "0.1.0-dev"

// Document is what ashlar version --json prints.
type Document struct {
	Version string `json:"version"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
	Go      string `json:"go"` // the release that it was built with
}

// Program is the version of this program: what go install was asked for, if it
// was built so, else that of the sources.
func Program() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return Text
	}
	return ofModule(info.Main)
}

// ofModule is the version of a module that was fetched, which alone has a sum.
func ofModule(m debug.Module) string {
	if m.Sum == "" || m.Version == "" {
		return Text
	}
	return strings.TrimPrefix(m.Version, "v")
}

// NewDocument describes this program.
func NewDocument() Document {
	return Document{Version: Program(), OS: runtime.GOOS, Arch: runtime.GOARCH, Go: runtime.Version()}
}
