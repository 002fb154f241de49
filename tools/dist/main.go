package main

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

func main() {
	out := flag.String("out", "dist", "the folder to write to, from the repository's root")
	host := flag.Bool("host", false, "make one wheel, that for this machine")
	check := flag.Bool("check", false, "test what is in the folder; with -host the wheel alone")
	flag.Parse()
	if err := run(*out, *host, *check); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

func run(out string, host, check bool) error {
	if err := os.Chdir(".."); err != nil { // go -C tools starts it in tools
		return err
	}
	if _, err := os.Stat("cmd/ashlar"); err != nil {
		return fmt.Errorf("run it as `go -C tools run ./dist` in the repository: %w", err)
	}
	if check {
		return checkAll(out, host)
	}
	return makeAll(out, host)
}

// makeAll fills an empty folder.
func makeAll(out string, host bool) error {
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "ashlar-dist")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)

	var builds []*build
	for _, t := range targets {
		if host && !t.isHost() {
			continue
		}
		b, err := t.build(work)
		if err != nil {
			return err
		}
		builds = append(builds, b)
	}
	var jobs errgroup.Group
	jobs.SetLimit(2)
	for _, b := range builds {
		jobs.Go(func() error { return b.wheel(out) })
		if host {
			continue
		}
		jobs.Go(func() error { return b.archive(out) })
		if b.deb != "" {
			jobs.Go(func() error { return b.debian(out) })
		}
	}
	if !host {
		jobs.Go(func() error { return image(out, builds) })
	}
	if err := jobs.Wait(); err != nil {
		return err
	}
	return sums(out)
}

// sums writes SHA256SUMS and lists what was made.
func sums(out string) error {
	entries, err := os.ReadDir(out)
	if err != nil {
		return err
	}
	var lines []string
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(out, e.Name()))
		if err != nil {
			return err
		}
		lines = append(lines, fmt.Sprintf("%x  %s\n", sha256.Sum256(data), e.Name()))
		fmt.Printf("%6.1f MB  %s\n", float64(len(data))/1e6, filepath.Join(out, e.Name()))
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[66:], b[66:]) })
	return os.WriteFile(filepath.Join(out, "SHA256SUMS"), []byte(strings.Join(lines, "")), 0o644)
}
