package snapshot

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/ashlar-mem/ashlar/trace"
)

// FormatError says that a file is no snapshot.
type FormatError struct {
	Name   string // of the file
	Format string // "pickle" or "json" if it is that at least
	Seems  string // what it seems to be
}

func (e *FormatError) Error() string {
	inside := ""
	switch e.Format {
	case "pickle":
		inside = " in a pickle"
	case "json":
		inside = " in JSON"
	}
	return fmt.Sprintf("%s is no memory snapshot: it seems to be %s%s; a snapshot comes from torch.cuda.memory._dump_snapshot()", e.Name, e.Seems, inside)
}

// sniffBytes is how much of a file is looked at to find out what it is.
const sniffBytes = 512

var magics = []struct{ prefix, what string }{
	{"PK\x03\x04", "a zip archive such as a torch.save checkpoint"},
	{"\x89PNG", "a PNG image"},
	{"\xff\xd8\xff", "a JPEG image"},
	{"GIF8", "a GIF image"},
	{"%PDF", "a PDF document"},
	{"\x7fELF", "a program"},
	{"BZh", "bzip2 data: decompress it first"},
	{"\xfd7zXZ\x00", "xz data: decompress it first"},
	{"7z\xbc\xaf\x27\x1c", "a 7z archive: decompress it first"},
	{"\x04\x22\x4d\x18", "lz4 data: decompress it first"},
	{"\x1f\x8b", "gzip data inside compressed data"},
	{"\x28\xb5\x2f\xfd", "zstd data inside compressed data"},
	{"SQLite format 3", "an SQLite database"},
	{"PAR1", "a Parquet file"},
	{"\x93NUMPY", "a NumPy array"},
	{"\x89HDF", "an HDF5 file"},
	{"<", "HTML or XML"},
}

// oldPickle matches the beginnings of pickles of protocols 0 and 1, which have
// no header: an empty container; a mark, then the beginning of a value; or a
// name, which will be refused.
var oldPickle = regexp.MustCompile(`^(?s:[}\])][qr(.]|N\.|\([dl][pq(VSIFLNX.}\]]|\([(}\])NKMJX]|\([IFL][-0-9]|\(S['"]|\(?c[\w.]+\n[\w.]+\n)`)

// BeginsOldPickle reports whether a file begins as a pickle of protocol 0 or 1, of which the first is text. A text may begin so, too.
func BeginsOldPickle(head []byte) bool { return oldPickle.Match(head) }

// sniff distinguishes pickle and JSON by their first bytes.
func sniff(name string, head []byte) (string, error) {
	if len(head) == 0 {
		return "", &FormatError{Name: name, Seems: "an empty file"}
	}
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	for _, m := range magics {
		if bytes.HasPrefix(head, []byte(m.prefix)) || m.prefix == "<" && bytes.HasPrefix(text, []byte("<")) {
			return "", &FormatError{Name: name, Seems: m.what}
		}
	}
	switch {
	case head[0] == 0x80:
		if len(head) > 1 && head[1] > 5 {
			break
		}
		return "pickle", nil
	case len(text) > 0 && (text[0] == '{' || text[0] == '['):
		next := bytes.TrimLeft(text[1:], " \t\r\n")
		switch {
		case len(next) > 0 && (next[0] == '\'' || bytes.HasPrefix(next, []byte("{'"))):
			return "", &FormatError{Name: name, Seems: "a Python dictionary or list as printed, perhaps of memory_stats()"}
		case len(next) == 0 || text[0] == '{' && next[0] == '"' || strings.IndexByte("{[\"]}-0123456789tfnNI", next[0]) >= 0:
			return "json", nil
		}
	case BeginsOldPickle(head):
		return "pickle", nil
	}
	if isText(head) {
		return "", &FormatError{Name: name, Seems: "text"}
	}
	return "", &FormatError{Name: name, Seems: "other binary data"}
}

func isText(head []byte) bool {
	for len(head) > 0 {
		r, size := utf8.DecodeRune(head)
		if r == utf8.RuneError && size == 1 && len(head) >= utf8.UTFMax || r < ' ' && !strings.ContainsRune("\t\r\n\f\x1b", r) {
			return false
		}
		head = head[size:]
	}
	return true
}

// describeKeys guesses what a dictionary is that is no snapshot.
func describeKeys(x trace.Extra) string {
	switch {
	case len(x) == 0:
		return "an empty dictionary"
	case x.Has("ops"):
		return "a recording of the allocator's answers"
	case x.Has("allocated_bytes.all.current"), x.Has("allocated_bytes"), x.Has("num_alloc_retries"):
		return "a dump of memory_stats()"
	case x.Has("memory_stats"):
		return "notes beside a snapshot, with memory_stats()"
	case x.Has("traceEvents"):
		return "a trace of the profiler"
	}
	names := make([]string, 0, 4)
	for _, f := range x[:min(len(x), 4)] {
		names = append(names, f.Name)
	}
	more := ""
	if len(x) > 4 {
		more = ", ..."
	}
	return fmt.Sprintf("a dictionary of %.200s%s", strings.Join(names, ", "), more)
}
