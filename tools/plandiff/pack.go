package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/test/plancompare"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// packFolder compacts NAME.txt with NAME.json, for each of them in a folder.
func packFolder(out *bufio.Writer, dir string) error {
	to, err := plancompare.Folder()
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("%s has no recordings (NAME.txt and NAME.json)", dir)
	}
	total := int64(0)
	for _, name := range files {
		base := strings.TrimSuffix(name, ".txt")
		n, err := packOne(base, filepath.Join(to, "runs", filepath.Base(base)+".gz"))
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(name), err)
		}
		total += n
	}
	fmt.Fprintf(out, "%d recordings, %s\n", len(files), units.Size(uint64(total)))
	return nil
}

func packOne(base, to string) (int64, error) {
	facts, err := os.Open(base + ".json")
	if err != nil {
		return 0, err
	}
	defer facts.Close()
	events, err := os.Open(base + ".txt")
	if err != nil {
		return 0, err
	}
	defer events.Close()
	r, err := plancompare.ReadText(facts, events)
	if err != nil {
		return 0, err
	}
	f, err := os.Create(to)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if err := r.Write(f); err != nil {
		return 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), f.Close()
}
