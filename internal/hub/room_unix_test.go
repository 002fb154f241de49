//go:build unix

package hub

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestFileLimit: a process that may make small files only is told so at once, and does not wait for a server that cannot write.
func TestFileLimit(t *testing.T) {
	place, err := json.Marshal(struct{ Dir string }{t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", `ulimit -f 5; exec "$0"`, os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+string(place))
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "ulimit -f") {
		t.Errorf("%v: %s", err, out)
	}
}
