package playground

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/test/script"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/settings"
)

// Version is that of the language of the lines. A link names it.
const Version = 1

// The bounds of an experiment.
const (
	MaxLines  = 2000
	MaxLength = 400     // bytes of a line
	MaxBytes  = 1 << 40 // of a request, a limit, and of the device
	MinDevice = 2 << 20 // the driver hands out whole pages of this size
	MaxStream = 63
)

// DefaultDevice is the line of the device for experiments without one. Work on
// other streams goes on until a step ends it, so that waiting can be seen.
const DefaultDevice = "device total=512MiB events=manual"

// LineError says what is wrong with a line of an experiment.
type LineError struct {
	Line    int // from 1
	Text    string
	Problem string
}

func (e *LineError) Error() string {
	return fmt.Sprintf("line %d, %q: %s", e.Line, e.Text, e.Problem)
}

// step is a line that does something.
type step struct {
	line    int // position in the lines
	text    string
	words   []string
	chapter string
}

// read checks the lines of an experiment, all but what depends on the state, and
// returns the line of its device and its steps.
func read(lines []string) (device string, steps []step, err error) {
	if len(lines) > MaxLines {
		return "", nil, fmt.Errorf("the experiment has %s lines: at most %s can be played",
			units.Count(int64(len(lines))), units.Count(MaxLines))
	}
	device = DefaultDevice
	chapter := ""
	for i, line := range lines {
		text := strings.Join(strings.Fields(line), " ")
		wrong := func(format string, args ...any) error {
			return &LineError{i + 1, shorten(text), fmt.Sprintf(format, args...)}
		}
		if len(text) > MaxLength {
			return "", nil, wrong("it is longer than %d bytes", MaxLength)
		}
		if problem := unfit(text); problem != "" {
			return "", nil, wrong("%s", problem)
		}
		words := strings.Fields(text)
		switch {
		case text == "":
		case text[0] == '#':
			chapter = strings.TrimSpace(text[1:])
		case words[0] == "device":
			if len(steps) > 0 || device != DefaultDevice {
				return "", nil, wrong("there is one device, and it comes before all steps")
			}
			if err := checkDevice(words[1:]); err != nil {
				return "", nil, wrong("%s", plain(err))
			}
			device = text
		default:
			if err := check(words); err != nil {
				return "", nil, wrong("%s", plain(err))
			}
			steps = append(steps, step{i, text, words, chapter})
		}
	}
	return device, steps, nil
}

func shorten(text string) string {
	const most = 60
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

// unfit refuses what would not survive a link or a list of lines.
func unfit(text string) string {
	if strings.ContainsRune(text, ';') {
		return "a semicolon separates lines in a link: leave it out"
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' }) {
		return "it has characters that are no text"
	}
	return ""
}

// plain is the text of an error without the mark of package script.
func plain(err error) string {
	return strings.TrimPrefix(err.Error(), script.ErrCommand.Error()+": ")
}

// grammar has the words of each step. The arguments are checked by kind, an
// option is optional.
var grammar = map[string]struct {
	arguments []argument
	options   map[string]argument
	usage     string
}{
	"alloc":    {[]argument{name, amount}, map[string]argument{"stream": stream, "tenant": name}, "alloc NAME SIZE [stream=N] [tenant=NAME]"},
	"free":     {[]argument{name}, nil, "free NAME"},
	"record":   {[]argument{name, stream}, nil, "record NAME STREAM"},
	"complete": {[]argument{streamOrAll}, nil, "complete STREAM, or complete all"},
	"empty":    {nil, nil, "empty"},
	"limit":    {[]argument{amountOrNone}, nil, "limit SIZE, or limit none"},
	"set":      {nil, nil, "set SETTINGS"},
	"pool":     {[]argument{name}, nil, "pool NAME"},
	"begin":    {[]argument{name}, nil, "begin POOL"},
	"end":      {[]argument{name}, nil, "end POOL"},
	"close":    {[]argument{name}, nil, "close POOL"},
	"tenant":   {[]argument{name}, map[string]argument{"guarantee": amount, "ceiling": amount, "priority": stream}, "tenant NAME [guarantee=SIZE] [ceiling=SIZE] [priority=N]"},
}

// Commands are the first words of the steps there are.
func Commands() []string {
	var all []string
	for c := range grammar {
		all = append(all, c)
	}
	slices.Sort(all)
	return all
}

// argument checks one word.
type argument func(word string) error

func check(words []string) error {
	g, ok := grammar[words[0]]
	if !ok {
		return fmt.Errorf("there is no step %q: the steps are %s", words[0], strings.Join(Commands(), ", "))
	}
	rest := words[1:]
	if words[0] == "set" {
		return nil // what is wrong with settings is part of the answer
	}
	if len(rest) < len(g.arguments) {
		return fmt.Errorf("write %s", g.usage)
	}
	for i, a := range g.arguments {
		if err := a(rest[i]); err != nil {
			return err
		}
	}
	for _, word := range rest[len(g.arguments):] {
		key, value, _ := strings.Cut(word, "=")
		a, ok := g.options[key]
		if !ok {
			return fmt.Errorf("%q is too much: write %s", word, g.usage)
		}
		if err := a(value); err != nil {
			return err
		}
	}
	return nil
}

func checkDevice(words []string) error {
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "total":
			n, err := units.Parse(value)
			if err != nil {
				return err
			}
			if n < MinDevice || n > MaxBytes {
				return fmt.Errorf("the device has %s: it can have from %s to %s", units.Size(n), units.Size(MinDevice), units.Size(MaxBytes))
			}
		case "limit":
			if err := amount(value); err != nil {
				return err
			}
		case "events":
			if value != "manual" {
				return fmt.Errorf("events=%s is not known: write events=manual, or nothing for work that is done at once", value)
			}
		case "conf":
			if err := checkSettings(value); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%q is not known: a device has total=SIZE, limit=SIZE, conf=SETTINGS, events=manual", word)
		}
	}
	return nil
}

func checkSettings(conf string) error {
	s, err := settings.Parse(conf)
	if err != nil {
		return err
	}
	if s.Backend != settings.Native {
		return errors.New("the playground has PyTorch's own allocator only, not that of the driver")
	}
	return nil
}

var wellNamed = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,23}$`)

func name(word string) error {
	if !wellNamed.MatchString(word) {
		return fmt.Errorf("%q is no name: a letter, then up to 23 letters, digits, _ . or -", word)
	}
	return nil
}

func amount(word string) error {
	n, err := units.Parse(word)
	if err != nil {
		return err
	}
	if n < 1 || n > MaxBytes {
		return fmt.Errorf("%s is outside the bounds: 1 byte to %s", word, units.Size(MaxBytes))
	}
	return nil
}

func amountOrNone(word string) error {
	if word == "none" {
		return nil
	}
	return amount(word)
}

func stream(word string) error {
	if n, err := strconv.ParseUint(word, 10, 64); err != nil || n > MaxStream || strconv.FormatUint(n, 10) != word {
		return fmt.Errorf("%q is no stream: write a number from 0 to %d", word, MaxStream)
	}
	return nil
}

func streamOrAll(word string) error {
	if word == "all" {
		return nil
	}
	return stream(word)
}
