package python

import _ "embed"

// Dry is the recorder of dry runs, a Python program.
//
//go:embed ashlar_dry.py
var Dry []byte

// DryName is the name of its file.
const DryName = "ashlar_dry.py"
