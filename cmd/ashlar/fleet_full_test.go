//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/fleet"
)

// The disk is full on the way: what was added is counted, in one document.
func TestFleetAddFull(t *testing.T) {
	disk, from := t.TempDir(), t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=110m"); err != nil {
		t.Skipf("a small disk cannot be made: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(disk, syscall.MNT_DETACH) })
	for i := range 4 {
		text := strings.Repeat(fmt.Sprintf("%d .........\n", i), 20<<20/12) +
			"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB of which 10.00 MiB is free.\n"
		if err := os.WriteFile(filepath.Join(from, fmt.Sprint(i)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	code, stdout, stderr := fleetCommand(t, "add", "--json", "--dir", filepath.Join(disk, "store"), from)
	var added fleet.Added
	if err := json.Unmarshal([]byte(stdout), &added); err != nil {
		t.Fatalf("%v: %q, %q", err, stdout, stderr)
	}
	if code != exitInput || added.Added == 0 || added.Added == 4 || !strings.Contains(added.Error, "64 MiB are kept free") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("status %d, %+v, %q", code, added, stderr)
	}
}
