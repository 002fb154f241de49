package view

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/view/http"
)

// Screens are the screens of the page, as places name them.
var Screens = []string{"overview", "timeline", "segments", "stacks", "events", "whatif", "compare", "playground", "plan", "live", "fleet"}

// runless are the screens that are about no run.
var runless = []string{"playground", "plan", "live", "fleet"}

// maxPlace is the longest place: a plan may have a config in it.
const maxPlace = 512 << 10

// placeForm is #/RUN/SCREEN?PARAMETERS in characters that a link may have.
var placeForm = regexp.MustCompile(`^#/([0-9]{0,9})/([a-z]+)(?:\?([A-Za-z0-9._~!$&'()*+,;=:@/?%-]*))?$`)

// place is what stands behind # in the address of the page.
type place struct {
	run    int // 0: none
	screen string
	params url.Values
}

func parsePlace(text string) (*place, error) {
	if len(text) > maxPlace {
		return nil, errors.New("the place is too long")
	}
	m := placeForm.FindStringSubmatch(text)
	if m == nil {
		return nil, fmt.Errorf("%.80q is no place of the page: write #/RUN/SCREEN?..., as the page's address has it", text)
	}
	if !slices.Contains(Screens, m[2]) {
		return nil, fmt.Errorf("there is no screen %s: choose one of %s", m[2], strings.Join(Screens, ", "))
	}
	params, err := url.ParseQuery(strings.ReplaceAll(m[3], ";", "%3B"))
	if err != nil {
		return nil, fmt.Errorf("%.80q: %w", text, err)
	}
	run, _ := strconv.Atoi(m[1]) // none is 0
	return &place{run, m[2], params}, nil
}

// CheckPlace says why a text is no place of the page.
func CheckPlace(text string) error {
	_, err := parsePlace(text)
	return err
}

func (p *place) String() string {
	text := "#/"
	if p.run > 0 {
		text += strconv.Itoa(p.run)
	}
	text += "/" + p.screen
	if len(p.params) > 0 {
		text += "?" + p.params.Encode()
	}
	return text
}

// link is the command that shows a place of the page again.
type link struct {
	Command string `json:"command"`
}

// serveLink is api/link.
func (s *Server) serveLink(w http.ResponseWriter, r *http.Request, q *query) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return methodNotAllowed(w, "GET, HEAD")
	}
	p, err := parsePlace(q.values.Get("at"))
	if err != nil {
		return badRequest("%v", err)
	}
	l, _ := s.runs.list()
	return s.sendJSON(w, link{p.command(l.Runs)})
}

// command is the command line that opens the page at the place. It names the
// files that the place shows; the runs of it are numbered anew.
func (p *place) command(all []listing) string {
	line := "ashlar view"
	switch p.screen {
	case "live":
		line = "ashlar watch"
	case "fleet":
		line = "ashlar fleet serve --page"
	}
	if slices.Contains(runless, p.screen) {
		p.run = 0
		p.params.Del("against") // a run, which is not part of the link
	} else {
		shown := all
		if i := slices.IndexFunc(all, func(l listing) bool { return l.ID == p.run }); i >= 0 && p.screen != "compare" {
			shown = slices.DeleteFunc(slices.Clone(all), func(l listing) bool { return l.File != all[i].File })
		}
		for _, file := range p.renumber(shown) {
			line += " " + shellWord(file)
		}
	}
	return line + " --at " + shellWord(p.String())
}

// renumber gives runs the numbers that they get if their files are opened, and
// returns these: the first device of a file has the number of the file, those of
// further devices follow after all files.
func (p *place) renumber(shown []listing) []string {
	var files []string
	for _, l := range shown {
		if !slices.Contains(files, l.File) {
			files = append(files, l.File)
		}
	}
	numbers, next := map[int]int{}, len(files)
	begun := map[string]bool{}
	for _, file := range files {
		for _, l := range shown {
			switch {
			case l.File != file:
			case !begun[file]:
				begun[file] = true
				numbers[l.ID] = slices.Index(files, file) + 1
			default:
				next++
				numbers[l.ID] = next
			}
		}
	}
	p.run = numbers[p.run]
	for _, key := range []string{"b", "off"} { // runs besides the first
		var kept []string
		for text := range strings.SplitSeq(p.params.Get(key), ",") {
			if id, err := strconv.Atoi(text); err == nil && numbers[id] > 0 {
				kept = append(kept, strconv.Itoa(numbers[id]))
			}
		}
		p.params.Del(key)
		if len(kept) > 0 {
			p.params.Set(key, strings.Join(kept, ","))
		}
	}
	return files
}
