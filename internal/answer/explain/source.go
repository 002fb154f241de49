package explain

import (
	"bufio"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/timeline"
)

// maxSource is the longest source file that is read.
const maxSource = 16 << 20

// sourceLine returns the text of a line that a recording names, from a file below
// a directory; "" if it is not there. A recording may name any path: only what the
// user gave is opened, and nothing that a link in it leads out to.
func sourceLine(dir string, at timeline.Frame) string {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return ""
	}
	defer root.Close()
	// The program may lie elsewhere here: the longest end of its path counts.
	parts := strings.Split(strings.TrimPrefix(path.Clean(strings.ReplaceAll(at.Filename, `\`, "/")), "/"), "/")
	for i := range parts {
		name := strings.Join(parts[i:], "/")
		if !fs.ValidPath(name) {
			continue
		}
		if info, err := root.Stat(name); err != nil || !info.Mode().IsRegular() || info.Size() > maxSource {
			continue
		}
		return lineOf(root, name, at.Line)
	}
	return ""
}

func lineOf(root *os.Root, name string, line int64) string {
	f, err := root.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	scan := bufio.NewScanner(f)
	for n := int64(1); scan.Scan(); n++ {
		if n == line {
			return strings.TrimSpace(scan.Text())
		}
	}
	return ""
}
