// Package browsertests opens the page of ashlar view in a real browser and uses
// it as people do. It is a module of its own, so that the program does not have
// its dependencies.
//
//	go test .                        needs chromium
//	go test . -whole                 the layout at all widths, light and dark
//	BROWSER=firefox go test .        the same tests in Firefox
//	go run ./cmd/screenshots         pictures of all screens
//	go run ./cmd/bench-view          how fast the page answers
package browsertests
