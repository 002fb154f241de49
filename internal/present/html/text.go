package html

import (
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/present/text"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// clip makes a name printable and short enough, and a path a name.
func (d detail) clip(name string) string { return d.cut(name, d.text) }

// say does the same with a sentence, which may have several names in it.
// A number is kept on one line with its unit.
func (d detail) say(sentence string) string {
	return unit.ReplaceAllString(d.cut(sentence, 4*d.text), "$1\u00a0$2")
}

// bare leaves out the folders of absolute paths: a report is attached to tickets,
// and whose machine it was made on is nobody's business.
func (d detail) bare(text string) string {
	if d.file != "" {
		text = strings.ReplaceAll(text, d.file, baseName(d.file))
	}
	return absolute.ReplaceAllString(text, "$1$2")
}

// absolute is a path of several folders from the root, as Unix or Windows write it,
// up to the last name.
var absolute = regexp.MustCompile(`(^|[\s"'` + "`" + `(\[=<])(?:/|[A-Za-z]:[\\/])(?:[^\s/\\"'` + "`" + `()<>:,;]+[/\\])+([^\s/\\"'` + "`" + `()<>:,;]*)`)

// baseName is the last part of a path of any system.
func baseName(name string) string { return path.Base(strings.ReplaceAll(name, "\\", "/")) }

var unit = regexp.MustCompile(`(\d) (B\b|KiB\b|MiB\b|GiB\b|s\b|ms\b|%)`)

// cut takes the middle out of a text that is too long: of a name both ends say
// something.
func (d detail) cut(name string, most int) string {
	// What is far too long is cut first, so that cleaning it costs nothing.
	if longest := 8 * most; len(name) > longest {
		name = name[:longest/2] + name[len(name)-longest/2:]
	}
	name = text.Clean(d.bare(name))
	r := []rune(name)
	if len(r) <= most {
		return name
	}
	head := most * 2 / 3
	return string(r[:head]) + " ... " + string(r[len(r)-(most-head):])
}

// sayAll does so with a list of sentences.
func (d detail) sayAll(texts []string, most int) []string {
	out := make([]string, 0, min(len(texts), most)+1)
	for _, t := range texts[:min(len(texts), most)] {
		out = append(out, d.say(t))
	}
	if more := len(texts) - most; more > 0 {
		out = append(out, "and "+units.Count(int64(more))+" more")
	}
	return out
}

// size is a number of bytes, exact for machines and short for people.
type size struct {
	Field string // what it is, as the JSON of the commands names it; may be empty
	Bytes uint64
	Text  string
}

func newSize(field string, n uint64) size { return size{field, n, units.Size(n)} }

// sizeOf is nil for a number that is not known.
func sizeOf(field string, n *uint64) *size {
	if n == nil {
		return nil
	}
	s := newSize(field, *n)
	return &s
}

// px writes a length or a place in a picture.
func px(x float64) string {
	const tenths = 10
	n := int64(x*tenths + 0.5)
	if x < 0 {
		n = int64(x*tenths - 0.5)
	}
	if n%tenths == 0 {
		return strconv.FormatInt(n/tenths, 10)
	}
	return strconv.FormatFloat(float64(n)/tenths, 'f', 1, 64)
}

// stack is a call stack: the places that say most, and all of it.
type stack struct {
	Site   string
	Frames []frame
	More   int // frames that are left out
}

type frame struct {
	Name, Folder, Place string // Place is the file and the line
	Own                 bool   // of the user's own program
}

const noStack = "(no call stack in the file)"

// inPackage leaves out where a file lies, but for its place in a package of
// Python's, else for its folder.
func inPackage(file string) string {
	for _, root := range []string{"/site-packages/", "/dist-packages/"} {
		if _, after, ok := cutLast(file, root); ok {
			return after
		}
	}
	folder, name := path.Split(strings.ReplaceAll(file, "\\", "/"))
	if folder = path.Base(folder); folder == "/" || folder == "." {
		return name
	}
	return folder + "/" + name
}

// cutLast is strings.Cut at the last place.
func cutLast(text, sep string) (before, after string, ok bool) {
	if i := strings.LastIndex(text, sep); i >= 0 {
		return text[:i], text[i+len(sep):], true
	}
	return text, "", false
}

func (d detail) stack(frames []timeline.Frame, site timeline.Site) stack {
	if len(frames) == 0 {
		return stack{Site: noStack}
	}
	out := stack{Site: d.clip(site.String())}
	for _, f := range frames[:min(len(frames), d.frames)] {
		folder, file := path.Split(inPackage(f.Filename))
		g := frame{Name: d.clip(f.Name), Folder: d.clip(folder), Place: d.clip(file), Own: f.User()}
		if f.Line > 0 {
			g.Place += ":" + strconv.FormatInt(f.Line, 10)
		}
		out.Frames = append(out.Frames, g)
	}
	out.More = len(frames) - len(out.Frames)
	return out
}
