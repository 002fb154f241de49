package detect

import (
	"fmt"
	"regexp"
	"strings"
)

// ignoredByTcmalloc checks name and value. The tcmalloc of gperftools refuses no
// value, but reads some as another than they look like.
func ignoredByTcmalloc(name, value string, f Finding, used *object) []string {
	if !used.hasName(name) {
		return []string{"this tcmalloc does not have the name"}
	}
	if f.Version == nil {
		return nil // Google's, which has no version, has rules of its own
	}
	switch strings.TrimPrefix(name, "TCMALLOC_") {
	case "AGGRESSIVE_DECOMMIT", "DISABLE_MEMORY_RELEASE", "MEMFS_ABORT_ON_FAIL", "MEMFS_DISABLE_FALLBACK", "MEMFS_IGNORE_MMAP_FAIL",
		"MEMFS_MAP_PRIVATE", "PAGE_FENCE", "PAGE_FENCE_NEVER_RECLAIM", "PAGE_FENCE_READABLE", "RECLAIM_MEMORY", "SKIP_MMAP", "SKIP_SBRK",
		"STACKTRACE_METHOD_VERBOSE", "SYMBOLIZE_STACKTRACE", "TRACE":
		// Its first letter decides.
		if value != "" && !strings.Contains("tTyY1fFnN0", value[:1]) && !strings.EqualFold(value, "off") {
			return []string{fmt.Sprintf("tcmalloc reads %q as false: what begins with t, y or 1 is true", value)}
		}
	case "DEVMEM_LIMIT", "DEVMEM_START", "HEAP_LIMIT_MB", "LARGE_ALLOC_REPORT_THRESHOLD", "MAX_FREE_QUEUE_SIZE", "MAX_TOTAL_THREAD_CACHE_BYTES",
		"MEMFS_LIMIT_MB", "SAMPLE_PARAMETER", "TRANSFER_NUM_OBJ":
		if n := leadingNumber(value, 10); (n.rest != "" || !n.digits) && !n.overflow {
			return []string{misread("tcmalloc", value, n.rest, fmt.Sprint(n.signed()))}
		}
	case "RELEASE_RATE":
		reads := leadingFloat.FindString(value)
		rest := value[len(reads):]
		switch {
		case unusualFloat.MatchString(value):
		case reads == "":
			return []string{misread("tcmalloc", value, rest, "0")}
		case rest != "":
			return []string{misread("tcmalloc", value, rest, strings.TrimSpace(reads))}
		}
	}
	return nil
}

var (
	leadingFloat = regexp.MustCompile(`^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?`)
	// Hexadecimal numbers, infinity and the like are read too.
	unusualFloat = regexp.MustCompile(`(?i)^\s*[+-]?(0x|inf|nan)`)
)
