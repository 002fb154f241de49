package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// lab is where values come from.
type lab struct {
	root, bin string
	runs      []measuredRun
	gpu       []gpuFigure
	printed   map[string][]byte // by command line
}

// measuredRun is a line of measured.jsonl: a workload on a GPU under one setting.
type measuredRun struct {
	Name, Label, Conf string
	Limit             float64 `json:"limit_mb"`
	OOM               any
	Reserved          float64 `json:"reserved_bytes.all.peak"`
	Active            float64 `json:"active_bytes.all.peak"`
	Calls             float64 `json:"num_device_alloc"`
	Allocations       float64 `json:"allocation.all.allocated"`
	set               string
}

func (m measuredRun) key() string { return m.set + m.Name }

// gpuFigure is a line of claims.py.
type gpuFigure struct {
	ID, Date, Card, Torch, Command string
	Figure                         json.RawMessage
}

// sets are the folders with measured runs and their recordings under default settings.
var sets = map[string]string{"": "testdata/snapshots", "fresh ": "testdata/fresh"}

func newLab(root, bin string) (*lab, error) {
	l := &lab{root: root, bin: bin, printed: map[string][]byte{}}
	for _, s := range []struct{ set, file string }{{"", "testdata/measured.jsonl"}, {"fresh ", "testdata/fresh/measured.jsonl"}} {
		err := eachLine(filepath.Join(root, s.file), func(line []byte) error {
			m := measuredRun{set: s.set}
			if err := json.Unmarshal(line, &m); err != nil {
				return err
			}
			if m.Name != "streams_graphs" { // its peaks depend on when the GPU finishes work
				l.runs = append(l.runs, m)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	err := eachLine(filepath.Join(root, "testdata/claims/gpu.jsonl"), func(line []byte) error {
		var f gpuFigure
		err := json.Unmarshal(line, &f)
		l.gpu = append(l.gpu, f)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // nothing was measured yet
	}
	return l, err
}

func eachLine(path string, f func([]byte) error) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if err := f(lines.Bytes()); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return lines.Err()
}

// pairs returns the measured runs under a label with the same runs under another.
func (l *lab) pairs(label, base string) (runs, bases []measuredRun) {
	by := map[string]measuredRun{}
	for _, m := range l.runs {
		if m.Label == base {
			by[m.key()] = m
		}
	}
	for _, m := range l.runs {
		if b, ok := by[m.key()]; ok && m.Label == label {
			runs, bases = append(runs, m), append(bases, b)
		}
	}
	return runs, bases
}

// reservedChange returns how much more each measured run reserves under a label than under the defaults.
func (l *lab) reservedChange(label string) []value {
	var out []value
	runs, bases := l.pairs(label, "default")
	for i, m := range runs {
		out = append(out, value{m.key(), m.Reserved/bases[i].Reserved - 1})
	}
	return out
}

// rescues returns, for each run that fails under a limit with the defaults, 1 if it passes under a label.
func (l *lab) rescues(label string) []value {
	var out []value
	runs, bases := l.pairs("tight-"+label, "tight-default")
	for i, m := range runs {
		if bases[i].OOM != nil {
			out = append(out, value{m.key(), float64(btoi(m.OOM == nil))})
		}
	}
	return out
}

var errNoCommand = errors.New("there is no command to run")

// ashlar runs the command and decodes the document that it prints.
func (l *lab) ashlar(into any, args ...string) error {
	if l.bin == "" {
		return errNoCommand
	}
	line := strings.Join(args, "\x00")
	if _, done := l.printed[line]; !done {
		c := exec.Command(l.bin, args...)
		c.Dir = l.root
		var errs bytes.Buffer
		c.Stderr = &errs
		out, err := c.Output()
		var exit *exec.ExitError
		if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 1) { // 1 is an answer, too
			return fmt.Errorf("ashlar %s: %w: %s", strings.Join(args, " "), err, errs.Bytes())
		}
		l.printed[line] = out
	}
	return json.Unmarshal(l.printed[line], into)
}

// replay is what whatif says of one setting.
type replay struct {
	Settings string
	Recorded bool
	Fails    bool
	Reserved float64 `json:"peak_reserved_bytes"`
	Driver   float64 `json:"estimated_driver_ms"`
	When     *string `json:"empty_cache"`
}

// whatif replays the recording of each measured run, and passes on what becomes of it as recorded and by the last result.
func (l *lab) whatif(args func(measuredRun) []string, each func(m measuredRun, first, last replay)) error {
	for _, m := range l.runs {
		if m.Label != "default" {
			continue
		}
		more := args(m)
		if more == nil {
			continue
		}
		var document struct{ Results []replay }
		file := filepath.Join(sets[m.set], m.Name+"-default.pickle.gz")
		if err := l.ashlar(&document, append([]string{"whatif", file, "--json"}, more...)...); err != nil {
			return err
		}
		if n := len(document.Results); n > 1 {
			each(m, document.Results[0], document.Results[n-1])
		}
	}
	return nil
}

// replayedChange returns how much more each recording reserves under a setting.
func (l *lab) replayedChange(conf string) ([]value, error) {
	var out []value
	err := l.whatif(func(measuredRun) []string { return []string{"--set", conf} }, func(m measuredRun, first, last replay) {
		out = append(out, value{m.key(), last.Reserved/first.Reserved - 1})
	})
	return out, err
}

// replayedRescues returns, for each recording that fails under the limit of its tight run, 1 if it passes there under a setting.
func (l *lab) replayedRescues(conf string) ([]value, error) {
	limits := map[string]string{}
	for _, m := range l.runs {
		if m.Label == "tight-default" {
			limits[m.key()] = strconv.FormatFloat(m.Limit, 'f', -1, 64) + "MiB"
		}
	}
	var out []value
	err := l.whatif(func(m measuredRun) []string {
		if limits[m.key()] == "" {
			return nil
		}
		return []string{"--limit", limits[m.key()], "--set", conf}
	}, func(m measuredRun, first, last replay) {
		if first.Fails {
			out = append(out, value{m.key(), float64(btoi(!last.Fails))})
		}
	})
	return out, err
}

// plan is what ashlar plan says.
type plan struct {
	Allocated  float64 `json:"peak_allocated_bytes"`
	Reserved   float64 `json:"peak_reserved_bytes"`
	Parameters float64
	Components []struct {
		Name  string
		Bytes float64
	}
}

func (p *plan) kinds(names ...string) float64 {
	sum := 0.0
	for _, c := range p.Components {
		for _, n := range names {
			if c.Name == n {
				sum += c.Bytes
			}
		}
	}
	return sum
}

// plan plans a run: the words of base, and more.
func (l *lab) plan(base []string, more ...string) (*plan, error) {
	p := new(plan)
	return p, l.ashlar(p, slices.Concat([]string{"plan", "--json"}, base, more)...)
}

// figures decodes the lines of claims.py with an id.
func figures[T any](l *lab, id string, each func(T)) error {
	for _, f := range l.gpu {
		if f.ID != id {
			continue
		}
		var x T
		if err := json.Unmarshal(f.Figure, &x); err != nil {
			return fmt.Errorf("testdata/claims/gpu.jsonl, %s: %w", id, err)
		}
		each(x)
	}
	return nil
}

// cells returns the cells of the n-th row of a page's tables that begins with first.
func (l *lab) cells(page, first string, n int) ([]string, error) {
	data, err := os.ReadFile(filepath.Join(l.root, page))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(data)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) > 1 && strings.TrimSpace(cells[0]) == first {
			if n == 0 {
				return cells[1:], nil
			}
			n--
		}
	}
	return nil, fmt.Errorf("%s has no row %q", page, first)
}

var number = regexp.MustCompile(`[0-9][0-9,]*(\.[0-9]+)?`)

// numbers returns the numbers of a text.
func numbers(text string) []float64 {
	var out []float64
	for _, s := range number.FindAllString(text, -1) {
		x, err := strconv.ParseFloat(strings.ReplaceAll(s, ",", ""), 64)
		if err == nil {
			out = append(out, x)
		}
	}
	return out
}
