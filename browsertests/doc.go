// Package browsertests shows the page of ashlar view to a real browser and does
// what people do with it. It is a module of its own, so that nothing here weighs
// on the program.
//
//	go test .                        needs chromium
//	go run ./cmd/screenshots         pictures of all screens
//	go run ./cmd/bench-view          how fast the page answers
package browsertests
