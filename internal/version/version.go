package version

import "runtime"

// Text is what --version prints. cmd/libashlar has it once more, in C, where a
// forked child may ask for it; a test there compares them.
const Text = "0.1.0-dev"

// Document is what ashlar version --json prints.
type Document struct {
	Version string `json:"version"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
	Go      string `json:"go"` // the release that it was built with
}

// NewDocument describes this program.
func NewDocument() Document {
	return Document{Version: Text, OS: runtime.GOOS, Arch: runtime.GOARCH, Go: runtime.Version()}
}
