package short

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// under runs f with -short, and without.
func under(t *testing.T, f func(t *testing.T, short bool)) {
	before := testing.Short()
	defer func() {
		if err := flag.Set("test.short", map[bool]string{true: "true", false: "false"}[before]); err != nil {
			t.Error(err)
		}
	}()
	for _, value := range []string{"true", "false"} {
		if err := flag.Set("test.short", value); err != nil {
			t.Fatal(err)
		}
		f(t, value == "true")
	}
}

func TestShort(t *testing.T) {
	dir := t.TempDir()
	var files []string
	for name, size := range map[string]int{"a": 30, "b": 10, "c": 20} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(strings.Repeat("x", size)), 0o644); err != nil {
			t.Fatal(err)
		}
		files = append(files, path)
	}
	slices.Sort(files)
	under(t, func(t *testing.T, short bool) {
		some, times, small, skipped := []int{1, 2, 3, 4, 5, 6, 7}, 30, files, false
		if short {
			some, times, small, skipped = []int{1, 3, 5}, 3, []string{files[1], files[2]}, true
		}
		if got := Some([]int{1, 2, 3, 4, 5, 6, 7}, 3); !slices.Equal(got, some) {
			t.Error(got)
		}
		if got := Some([]int{1, 2}, 3); len(got) != 2 {
			t.Error(got)
		}
		if got := Times(30); got != times || Times(5) == 0 {
			t.Error(got, Times(5))
		}
		if got := Files(t, files, 2); !slices.Equal(got, small) {
			t.Error(got)
		}
		ran := false
		t.Run("skip", func(t *testing.T) {
			Skip(t)
			ran = true
		})
		if ran == skipped {
			t.Errorf("short %v: ran %v", short, ran)
		}
	})
}
