package main

import (
	"bytes"
	"os"
	"testing"
)

// What cobra prints itself is a result like any other.
func TestHelpCannotBeWritten(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	for _, args := range [][]string{{"--help"}, {"--version"}, {"help"}, {"help", "report"}, {"fleet", "add", "-h"}, {"plan", "--help"}, {"stats", "--json", "--help"}, {"completion", "bash"}, {"version"}} {
		var stderr bytes.Buffer
		if code := execute(t.Context(), stdio{out: full, err: &stderr}, args); code != exitInput || stderr.String() != "ashlar: writing the result: write /dev/full: no space left on device\n" {
			t.Errorf("%q: status %d, %q", args, code, &stderr)
		}
	}
}
