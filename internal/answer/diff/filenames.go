package diff

import (
	"fmt"
	"path/filepath"

	"github.com/ashlar-mem/ashlar/trace"
)

// FileNames returns the names of files without their directories, as far as
// that leaves them different. - is standard input.
func FileNames(files []string) map[string]string {
	times := map[string]int{}
	for _, f := range files {
		times[filepath.Base(f)]++
	}
	out := map[string]string{}
	for _, f := range files {
		switch base := filepath.Base(f); {
		case f == "-":
			out[f] = "stdin"
		case times[base] > 1:
			out[f] = f
		default:
			out[f] = base
		}
	}
	return out
}

// RankName returns the name of a file, with the device if it has several.
func RankName(file string, t *trace.Trace, devices int) string {
	if devices > 1 {
		return fmt.Sprintf("%s:%d", file, t.Device)
	}
	return file
}
