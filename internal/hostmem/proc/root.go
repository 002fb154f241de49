package proc

import (
	"os"
	"strings"
)

// Root is the directory that a process has for its root, as we see it; empty if
// that is our own.
func Root(pid int) string {
	root, err := os.Readlink(path(pid, "root"))
	if err != nil || root == "/" {
		return ""
	}
	return root
}

// Inside gives a name, as /proc shows it to us, as a process sees it that has a
// root of its own.
func Inside(root, name string) string {
	if inside, ok := strings.CutPrefix(name, root+"/"); ok && root != "" {
		return "/" + inside
	}
	return name
}

// Directory is the one that a process works in, as it sees it.
func Directory(pid int) (string, error) {
	dir, err := os.Readlink(path(pid, "cwd"))
	if err != nil {
		return "", classify(pid, err)
	}
	return Inside(Root(pid), strings.TrimSuffix(dir, deletedMark)), nil
}
