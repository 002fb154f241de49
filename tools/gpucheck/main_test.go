package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// runCommand runs the program as from the command line.
func runCommand(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

func recording(name string) string {
	return filepath.Join("..", "..", "testdata", "oracle", name+"-1.json.gz")
}

func TestUsage(t *testing.T) {
	t.Setenv("ASHLAR_LIBCUDA", filepath.Join(t.TempDir(), "no-such-library.so"))
	for _, x := range []struct {
		args []string
		want string
	}{
		{nil, "usage: gpucheck"},
		{[]string{"dance"}, "usage: gpucheck"},
		{[]string{"small", "-driver", "abacus"}, `unknown driver "abacus"`},
		{[]string{"small"}, "no-such-library"},
		{[]string{"oracle", "-driver", "host"}, "name the recordings"},
		{[]string{"oracle", "-driver", "host", "nowhere.json.gz"}, "nowhere.json.gz"},
		{[]string{"small", "-limit", "1"}, "flag provided but not defined"},
	} {
		code, out, errs := runCommand(t, x.args...)
		if code != exitUsage || out != "" || !strings.Contains(errs, x.want) {
			t.Errorf("%q: exit %d, %q, %q", x.args, code, out, errs)
		}
	}
}

// A device in host memory gives addresses from the top down, and so other ones
// than a GPU in another order.
func TestHostOracle(t *testing.T) {
	code, out, errs := runCommand(t, "oracle", "-driver", "host", recording("edges-default"), recording("streams-expand"))
	if code != exitGood {
		t.Fatalf("exit %d\n%s%s", code, out, errs)
	}
	for _, want := range []string{"2 recordings: ", "wrong in 0", "16 of 16", "the recorded device had 150109880320 bytes"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	code, out, errs = runCommand(t, "oracle", "-driver", "host", "-json", "-both", recording("lessons-default"))
	var doc oracleReport
	if err := json.Unmarshal([]byte(out), &doc); code != exitGood || err != nil {
		t.Fatalf("exit %d, %v\n%s%s", code, err, out, errs)
	}
	if r := doc.Recordings[0]; !doc.OK || !r.OK || r.Operations != 287 || r.Recorded == nil || !r.Recorded.Identical {
		t.Errorf("%+v", r)
	}
}
