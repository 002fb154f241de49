//go:build !js

package view

import _ "embed"

// sample is a recorded run to look at: a training job that keeps the graph of
// every step, and dies of it. It is testdata/snapshots/leak_graph-tight-default.
//
//go:embed sample.pickle.gz
var sample []byte

const sampleName = "sample, a leak.pickle.gz"
