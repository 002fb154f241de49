// Package python carries the recorder of dry runs inside the command.
package python

import "embed"

//go:embed ashlar*.py
var files embed.FS

// DryName is the name of the recorder's file.
const DryName = "ashlar_dry.py"

// Dry returns the recorder of dry runs, a Python program.
func Dry() ([]byte, error) { return files.ReadFile(DryName) }
