package main

import (
	"io"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/present/html"
	"github.com/ashlar-mem/ashlar/internal/run"
)

// A report and an explanation find the start state, replay the run, follow its
// totals and index its blocks once, whether a request failed or not.
func TestPartsOfARunAreMadeOnce(t *testing.T) {
	once := run.Made{Start: 1, Annotations: 1, Verified: 1, History: 1, Lives: 1, Analysis: 1, Findings: 1}
	for _, file := range []string{died, served} {
		std := stdio{out: io.Discard, err: io.Discard}
		o := &reportOptions{}
		o.device = &deviceFlag{number: -1}
		in, c, err := o.collect(t.Context(), std, file, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Loaded.Made(); got != once {
			t.Errorf("%s: the explanation made %+v, want %+v", file, got, once)
		}
		if err := html.Write(t.Context(), io.Discard, in); err != nil {
			t.Fatal(err)
		}
		all := once
		all.Indices = 1
		if got := c.Loaded.Made(); got != all || in.Run != c.Loaded {
			t.Errorf("%s: the report made %+v, want %+v", file, got, all)
		}
	}
}
