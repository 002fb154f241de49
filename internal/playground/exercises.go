package playground

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/units"
)

// Exercise is an experiment with questions, whose answers the engine knows.
type Exercise struct {
	Experiment
	Questions []Question `json:"questions"`
}

// Question is asked about an exercise.
type Question struct {
	Text string `json:"text"`
	Unit string `json:"unit"` // UnitBytes, UnitCount or UnitYesNo

	// lines are played, and the answer is read off their last moment.
	lines   []string
	measure func(*Answer) uint64
}

// The units of answers.
const (
	UnitBytes = "bytes"  // a size in any usual form
	UnitCount = "count"  // a number
	UnitYesNo = "yes_no" // yes or no
)

// Verdict is what the engine says to an answer.
type Verdict struct {
	Right    bool   `json:"right"`
	Expected string `json:"expected"` // as it is written
	// Why has the sentences of the step that decided.
	Why []Sentence `json:"why"`
}

// Exercises are those there are.
func Exercises() []Exercise { return []Exercise{hundredBlocks(), twoModels(), threeAM()} }

// Grade plays an exercise and judges answers to its questions, in their order. An
// empty answer is not right.
func Grade(ctx context.Context, name string, answers []string) ([]Verdict, error) {
	all := Exercises()
	i := slices.IndexFunc(all, func(e Exercise) bool { return e.Name == name })
	if i < 0 {
		var names []string
		for _, e := range all {
			names = append(names, e.Name)
		}
		return nil, fmt.Errorf("there is no exercise %q: there are %s", name, strings.Join(names, ", "))
	}
	questions := all[i].Questions
	if len(answers) != len(questions) {
		return nil, fmt.Errorf("the exercise has %d questions, and there are %d answers", len(questions), len(answers))
	}
	verdicts := make([]Verdict, len(questions))
	for i := range questions {
		q := &questions[i]
		played, err := Play(ctx, q.lines, End)
		if err != nil {
			return nil, err
		}
		want := q.measure(played)
		verdicts[i] = Verdict{Right: q.accepts(answers[i], want), Expected: q.write(want), Why: played.Moment.Sentences}
	}
	return verdicts, nil
}

// tolerance is how far off a size may be: people round.
const tolerance = 0.01

func (q *Question) accepts(answer string, want uint64) bool {
	answer = strings.ToLower(strings.TrimSpace(answer))
	switch q.Unit {
	case UnitYesNo:
		return answer == q.write(want)
	case UnitCount:
		n, err := strconv.ParseUint(answer, 10, 64)
		return err == nil && n == want
	}
	n, err := units.Parse(answer)
	return err == nil && math.Abs(float64(n)-float64(want)) <= tolerance*float64(want)
}

func (q *Question) write(n uint64) string {
	switch {
	case q.Unit == UnitYesNo && n > 0:
		return "yes"
	case q.Unit == UnitYesNo:
		return "no"
	case q.Unit == UnitCount:
		return strconv.FormatUint(n, 10)
	}
	return units.Size(n)
}

// What questions ask for.
func reserved(a *Answer) uint64   { return a.Moment.ReservedBytes }
func free(a *Answer) uint64       { return a.Moment.FreeBytes }
func releasable(a *Answer) uint64 { return a.Moment.ReleasableBytes }

// served is 1 if the last request was.
func served(a *Answer) uint64 {
	if a.Steps[len(a.Steps)-1].Outcome == OutcomeOOM {
		return 0
	}
	return 1
}

// with returns lines with more after them.
func with(lines []string, more ...string) []string { return slices.Concat(lines, more) }

// under returns lines on another device.
func under(device string, lines []string) []string { return slices.Concat([]string{device}, lines[1:]) }

// hundredBlocks are tensors of a million floats, 4 MB each, of which every second
// one is dropped.
func hundredBlocks() Exercise {
	var l lines
	l.add("device total=80GiB")
	l.holes(100, "4000000", "4 MB")
	ask := []string{"# 100 MB", "alloc big 100000000"}
	return Exercise{
		Experiment: Experiment{
			Name: "hundred-blocks", Title: "A hundred blocks, every second freed",
			Text: "100 tensors of 4 MB, every second one freed, then one of 100 MB. Say first what happens, then play it.", Lines: with(l, ask...),
		},
		Questions: []Question{
			{"How much is reserved before the request for 100 MB?", UnitBytes, l, reserved},
			{"How much of it is free?", UnitBytes, l, free},
			{"How much of that would empty_cache() give back?", UnitBytes, l, releasable},
			{"Does the request for 100 MB succeed, on a device with 80 GiB?", UnitYesNo, with(l, ask...), served},
			{"And under a limit of 450 MiB?", UnitYesNo, under("device total=80GiB limit=450MiB", with(l, ask...)), served},
		},
	}
}

// twoModels loads one model after the other; their layers differ in size.
func twoModels() Exercise {
	model := func(l *lines, name string, layers int, size string) {
		l.chapter("model %s", name)
		for i := 1; i <= layers; i++ {
			l.add("alloc %s%d %s", name, i, size)
		}
	}
	drop := func(l *lines, name string, layers int) {
		l.chapter("model %s is dropped", name)
		for i := 1; i <= layers; i++ {
			l.add("free %s%d", name, i)
		}
	}
	build := func(device string, empty bool) []string {
		var l lines
		l.add("%s", device)
		model(&l, "a", 20, "512MiB")
		drop(&l, "a", 20)
		if empty {
			l.add("empty")
		}
		model(&l, "b", 15, "700MiB")
		return l
	}
	const device = "device total=80GiB"
	return Exercise{
		Experiment: Experiment{
			Name: "two-models", Title: "Two models in turn",
			Text: "A model of 20 layers with 512 MiB each is loaded and dropped, then one of 15 layers with 700 MiB each is loaded.", Lines: build(device, false),
		},
		Questions: []Question{
			{"How much is reserved when the second model is loaded?", UnitBytes, build(device, false), reserved},
			{"How much, if empty_cache() is called in between?", UnitBytes, build(device, true), reserved},
			{"How much with expandable_segments:True instead?", UnitBytes, build(device+" conf=expandable_segments:True", false), reserved},
			{"Do both fit under a limit of 12 GiB, without any of that?", UnitYesNo, build(device+" limit=12GiB", false), served},
		},
	}
}

// threeAM is a server with 41 GiB reserved and 23 GiB allocated: large segments are
// pinned by requests of half their size.
func threeAM() Exercise {
	var l lines
	l.add("device total=48GiB limit=41.5GiB")
	l.chapter("a busy evening")
	for i := 1; i <= 36; i++ {
		l.add("alloc batch%d 1GiB", i)
	}
	for i := 1; i <= 5; i++ {
		l.add("alloc model%d 1GiB", i)
	}
	l.chapter("at night smaller requests take their place")
	for i := 1; i <= 36; i++ {
		l.add("free batch%d", i)
		l.add("alloc session%d 512MiB", i)
		l.add("alloc reply%d 512MiB", i)
	}
	for i := 1; i <= 36; i++ {
		l.add("free reply%d", i)
	}
	ask := []string{"# 3 AM", "alloc big 1GiB"}
	return Exercise{
		Experiment: Experiment{
			Name: "three-am", Title: "3 AM: 41 GiB reserved, 23 GiB allocated",
			Text: "A server has 41 GiB reserved, of which 23 GiB are allocated, under a limit of 41.5 GiB. A request for 1 GiB comes in.", Lines: with(l, ask...),
		},
		Questions: []Question{
			{"How much is free inside PyTorch before the request?", UnitBytes, l, free},
			{"How much of it would empty_cache() give back?", UnitBytes, l, releasable},
			{"Is the request for 1 GiB served?", UnitYesNo, with(l, ask...), served},
			{"Is it with expandable_segments:True from the start?", UnitYesNo, under("device total=48GiB limit=41.5GiB conf=expandable_segments:True", with(l, ask...)), served},
		},
	}
}
