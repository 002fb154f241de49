//go:build unix

package guard

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		os.WriteFile(in("file"), []byte("text"), 0o600),
		os.WriteFile(in("full"), make([]byte, 1<<20), 0o600),
		os.WriteFile(in("long"), make([]byte, 1<<20+1), 0o600),
		os.WriteFile(in("endless"), nil, 0o600), os.Truncate(in("endless"), 1<<40),
		os.Symlink("file", in("link")), os.Symlink("/dev/zero", in("zero")),
		syscall.Mkfifo(in("pipe"), 0o600), os.Symlink("pipe", in("pipelink")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("unix", in("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	const long, irregular = ": more than 1 MiB: this is no list", " is not a regular file"
	for _, tt := range []struct {
		name, regular, any string // what is wrong; - leaves it out, as a pipe waits for ever
	}{
		{"file", "", ""},
		{"link", "", ""},
		{"full", "", ""},
		{"long", long, long},
		{"endless", long, long},
		{"zero", irregular, long},
		{"pipe", irregular, "-"},
		{"pipelink", irregular, "-"},
		{"socket", irregular, "-"},
	} {
		for _, read := range []struct {
			what string
			read func(string, int, string) ([]byte, error)
			want string
		}{{"ReadRegular", ReadRegular, tt.regular}, {"ReadFile", ReadFile, tt.any}} {
			if read.want == "-" {
				continue
			}
			data, err := read.read(in(tt.name), 1, "list")
			var refused *RefusedError
			switch {
			case read.want == "":
				if err != nil || len(data) == 0 {
					t.Errorf("%s of %s: %d bytes, %v", read.what, tt.name, len(data), err)
				}
			case !errors.As(err, &refused) || err.Error() != in(tt.name)+read.want:
				t.Errorf("%s of %s: %v", read.what, tt.name, err)
			}
		}
	}
	go os.WriteFile(in("pipe"), []byte("text"), 0) // the reader sees what is wrong
	if data, err := ReadFile(in("pipe"), 1, "list"); string(data) != "text" || err != nil {
		t.Errorf("a pipe that a user names: %q, %v", data, err)
	}
	if _, err := ReadRegular(in("none"), 1, "list"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := ReadRegular(dir, 1, "list"); err == nil || !strings.Contains(err.Error(), "directory") {
		t.Errorf("a folder: %v", err)
	}
}
