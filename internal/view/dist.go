//go:build !js

package view

import "embed"

// dist is the page as tools/webbuild makes it.
//
//go:embed all:dist
var dist embed.FS
