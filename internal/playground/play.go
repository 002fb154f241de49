package playground

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/test/script"
	"github.com/ashlar-mem/ashlar/settings"
)

// End stands for the last step.
const End = -1

// Play runs an experiment and returns the state after the given number of
// steps. Lines that cannot be played give a *[LineError].
func Play(ctx context.Context, lines []string, at int) (*Answer, error) {
	device, steps, err := read(lines)
	if err != nil {
		return nil, err
	}
	if at == End {
		at = len(steps)
	}
	if at < 0 || at > len(steps) {
		return nil, fmt.Errorf("there is no step %d: the experiment has %d", at, len(steps))
	}
	g, err := newGame(device)
	if err != nil {
		return nil, err
	}
	out := &Answer{Version: Version, Device: g.device(device), Steps: make([]Step, 0, len(steps)), At: at}
	if at == 0 {
		out.Moment = g.moment()
	}
	for i := range steps {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		s := &steps[i]
		done, err := g.play(s, i+1 == at)
		if err != nil {
			return nil, &LineError{s.line + 1, shorten(s.text), plain(err)}
		}
		out.Steps = append(out.Steps, done)
		if i+1 == at {
			out.Moment = g.moment()
		}
	}
	out.Moment.NextName = freeName(steps)
	return out, nil
}

// game is an experiment that is being played.
type game struct {
	runner *script.Runner
	words  *words // not nil while the step that is looked at is played

	held   map[uint64]*holder // blocks in use or pending, by address
	failed map[string]bool    // names whose request failed
	ranges []alloc.Span       // addresses reserved for expandable segments
	shared bool               // there are tenants

	last    *holder    // made by the last step
	touched alloc.Span // by the last step

	// fraction is the per_process_memory_fraction that is in force: that of the
	// beginning, until a limit takes its place (spec 3.2).
	fraction float64

	hit                       bool // the last request was served by the cache
	oom                       *alloc.OutOfMemoryError
	requests, hits            int
	chapter                   string
	chapterRequests, chapHits int

	sentences []Sentence
	events    []string
	message   string
}

// holder is who a block was handed out to.
type holder struct {
	name string
	uses []uint64
}

func newGame(device string) (*game, error) {
	g := &game{runner: script.New(), held: map[uint64]*holder{}, failed: map[string]bool{}}
	g.runner.Options = []alloc.Option{
		alloc.WithExplainer(g.heed),
		alloc.WithOOMObserver(func(e *alloc.OutOfMemoryError) { g.oom = e }),
	}
	if _, err := g.runner.Run(device); err != nil {
		return nil, err
	}
	g.fraction = g.runner.Allocator.Settings().PerProcessMemoryFraction
	return g, nil
}

// heed follows the decisions of the engine, and puts them into words if the
// step is looked at.
func (g *game) heed(d alloc.Decision) {
	if g.words != nil {
		g.words.heed(d)
	}
	switch d := d.(type) {
	case alloc.BestFit:
		g.hit = true
	case alloc.Return:
		delete(g.held, d.Block.Addr)
		g.touched = d.Merged()
	case alloc.StreamUse:
		if h := g.held[d.Block.Addr]; h != nil && !d.Own && !slices.Contains(h.uses, d.Stream) {
			h.uses = append(h.uses, d.Stream)
		}
	case alloc.Reservation:
		g.ranges = append(slices.DeleteFunc(g.ranges, func(r alloc.Span) bool {
			return r.Addr < d.Range.End() && d.Range.Addr < r.End()
		}), d.Range)
	}
}

// play does one step. If it is looked at, what happens is put into words.
func (g *game) play(s *step, watched bool) (Step, error) {
	if s.chapter != g.chapter {
		g.chapter, g.chapterRequests, g.chapHits = s.chapter, 0, 0
	}
	g.hit, g.oom, g.last, g.touched, g.runner.Refused = false, nil, nil, alloc.Span{}, nil
	if watched {
		g.words = &words{game: g}
	}
	outcome, answer, err := g.do(s)
	if err != nil {
		return Step{}, err
	}
	if watched {
		g.words.finish()
		g.sentences, g.words = g.words.said, nil
		g.events = nil
		for line := range strings.Lines(answer) {
			if !strings.HasPrefix(line, "error: ") { // that is told in a sentence
				g.events = append(g.events, strings.TrimSuffix(line, "\n"))
			}
		}
		if g.oom != nil {
			g.message = g.oom.Error()
		}
	}
	t := g.totals()
	return Step{
		Line: s.line, Text: s.text, Chapter: s.chapter, Outcome: outcome,
		ReservedBytes: t.Reserved, AllocatedBytes: t.Allocated, ActiveBytes: t.Active,
	}, nil
}

// withoutTenants are steps that concern the one allocator of a device.
var withoutTenants = []string{"set", "limit", "pool", "begin", "end", "close"}

func (g *game) do(s *step) (outcome, answer string, err error) {
	if g.shared && slices.Contains(withoutTenants, s.words[0]) {
		return "", "", fmt.Errorf("%s cannot be used where there are tenants", s.words[0])
	}
	switch s.words[0] {
	case "alloc":
		return g.alloc(s)
	case "free", "record":
		if g.failed[s.words[1]] {
			// The step may have worked under other settings: it is no mistake.
			g.say(sayNothing, "%s was not allocated, so there is nothing to do.", s.words[1])
			return "", "", nil
		}
		if _, ok := g.runner.Address(s.words[1]); !ok {
			return "", "", fmt.Errorf("%s is not allocated at this step", s.words[1])
		}
		answer, err = g.runner.Run(s.text)
	case "set":
		answer, err = g.set(s)
	case "limit":
		answer, err = g.runner.Run(s.text)
		g.fraction = 1
		g.sayLimit()
	case "complete":
		answer, err = g.runner.Run(s.text)
		g.sayComplete(s.words[1])
	case "tenant":
		answer, err = g.runner.Run(s.text)
		g.shared = true
		g.sayTenant(s.words[1])
	case "pool", "begin", "end", "close":
		answer, err = g.runner.Run(s.text)
		g.sayPrivate(s.words[0], s.words[1], answer)
	default:
		answer, err = g.runner.Run(s.text)
		g.sayEmpty(answer)
	}
	return "", answer, err
}

func (g *game) alloc(s *step) (outcome, answer string, err error) {
	name := s.words[1]
	if _, ok := g.runner.Address(name); ok {
		return "", "", fmt.Errorf("%s is allocated already: free it first, or choose another name", name)
	}
	answer, err = g.runner.Run(s.text)
	if err != nil {
		return "", "", err
	}
	g.requests++
	g.chapterRequests++
	delete(g.failed, name)
	addr, ok := g.runner.Address(name)
	switch {
	case !ok:
		outcome = OutcomeOOM
		g.failed[name] = true
		g.sayFailure(answer)
		g.sayRefusal()
	case g.hit:
		outcome = OutcomeHit
		g.hits++
		g.chapHits++
	default:
		outcome = OutcomeNew
	}
	if ok {
		g.last = &holder{name: name}
		g.held[addr] = g.last
		g.sayResult(name, addr)
	}
	return outcome, answer, nil
}

// set changes the settings while the program runs. PyTorch keeps what it read
// before it found something wrong, and so does the engine.
func (g *game) set(s *step) (string, error) {
	conf := strings.Join(s.words[1:], " ")
	_, err := g.runner.Allocator.Settings().Apply(conf)
	var wrong *settings.Error
	if err != nil && !errors.As(err, &wrong) {
		return "", err
	}
	answer, failure := g.runner.Run(s.text)
	g.saySettings(err)
	if named, _ := settings.Parse(conf); named.PerProcessMemoryFraction != 1 && named.PerProcessMemoryFraction != g.fraction {
		g.say(sayConf, "per_process_memory_fraction is read once, when CUDA is set up: here it has no effect. "+
			"torch.cuda.set_per_process_memory_fraction, the limit of this page, works while the program runs.")
	}
	return answer, failure
}

// freeName finds a name for the next block by hand.
func freeName(steps []step) string {
	used := map[string]bool{}
	for i := range steps {
		if w := steps[i].words; w[0] == "alloc" {
			used[w[1]] = true
		}
	}
	for c := 'a'; c <= 'z'; c++ {
		if !used[string(c)] {
			return string(c)
		}
	}
	for n := 1; ; n++ {
		if name := "b" + strconv.Itoa(n); !used[name] {
			return name
		}
	}
}
