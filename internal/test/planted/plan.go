package planted

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// Params are the size of a fleet and what is planted in it.
type Params struct {
	Seed    uint64
	Files   int // about
	Runs    int
	Ranks   int // of each run, of which a launch has some
	Commits int
	Causes  int
	Twins   int // further pairs of causes, which are two lines of one program

	// GrowLeast and GrowMost are parts of the peak.
	GrowLeast, GrowMost float64
	// Scatter is by which part of the peak ranks differ.
	Scatter float64
	// Failed is the part of the files that failed.
	Failed float64

	// Bases and Failures are the recordings that runs and failures are made
	// from; those of testdata that fit if they are empty.
	Bases, Failures []string
}

// Usual are the parameters of make fleet.
func Usual() Params {
	return Params{
		Seed: 1, Files: 1000, Runs: 8, Ranks: 64, Commits: 40, Causes: 5, Twins: 0,
		GrowLeast: 0.02, GrowMost: 0.20, Scatter: 0.002, Failed: 0.2,
	}
}

// Truth is what was planted.
type Truth struct {
	Files  []File     `json:"files"`
	Grown  []Grown    `json:"grown"`
	Odd    []Odd      `json:"odd"`
	Causes [][]string `json:"causes"` // paths of files that failed for the same reason
}

// File is one file, and what its recorder says of it.
type File struct {
	Path    string `json:"path"` // below the folder of the fleet, with slashes
	Run     string `json:"run"`
	Attempt int64  `json:"attempt"`
	Rank    int64  `json:"rank"`
	World   int64  `json:"world"`
	Commit  string `json:"commit"`
	TimeUS  int64  `json:"time_us"`
}

// Grown is a commit at which a run grew.
type Grown struct {
	Run    string  `json:"run"`
	Commit string  `json:"commit"`
	Share  float64 `json:"share"` // of the peak before
	// File and Function are those of the innermost frame of the user's own
	// program in the stack that grew.
	File     string `json:"file"`
	Function string `json:"function"`
}

// Odd is a rank of a launch that is unlike the others.
type Odd struct {
	Run    string  `json:"run"`
	Commit string  `json:"commit"`
	Rank   int64   `json:"rank"`
	Share  float64 `json:"share"` // of the peak of the others
}

// bases are the recordings that runs are made from. Requests that failed in them
// are left out.
var bases = []string{
	"advice/healthy_train_and_eval", "advice/llama_adam", "snapshots/unet_multires-default", "advice/teacher_fp32",
	"advice/moe_dense", "advice/ddp_buckets", "advice/adamw_seq2seq", "variety/compile",
	"advice/val_large_batch", "advice/rare_long_batch", "advice/empty_cache_every_step", "advice/lightning_validation",
	"snapshots/leak_graph-default", "advice/graph_batches", "advice/vit_batch", "advice/checkpoint_on_gpu",
}

// The kinds of commits.
const (
	onlyLines = iota
	grows
	growsLittle
	shrinks
)

// kindOf draws what a commit does. The first of a run is what others are compared
// with.
func kindOf(rng *rand.Rand, first bool) int {
	switch n := rng.IntN(20); {
	case first || n < 7:
		return onlyLines
	case n < 14:
		return grows
	case n < 17:
		return growsLittle
	}
	return shrinks
}

// launchPlan is the ranks of a run at a commit.
type launchPlan struct {
	run    int
	commit int
	ranks  []int64
	kind   int
	odd    []int64
}

// plan lays out who runs what.
func (p *Params) plan(rng *rand.Rand) []launchPlan {
	perRun := max(2, p.Commits/p.Runs)
	files := int(float64(p.Files) * (1 - p.Failed))
	ranks := max(1, min(p.Ranks, files/(p.Runs*perRun)))
	var out []launchPlan
	for run := range p.Runs {
		var same []int64 // half of the runs always report from the same ranks
		if run%2 == 0 {
			same = p.someRanks(rng, ranks)
		}
		for i := range perRun {
			l := launchPlan{run: run, commit: (i*p.Runs + run) % p.Commits, ranks: same, kind: kindOf(rng, i == 0)}
			if same == nil {
				l.ranks = p.someRanks(rng, ranks)
			}
			const enough = 5 // for most not to be odd
			if len(l.ranks) >= enough && rng.IntN(3) == 0 {
				l.odd = append(l.odd, l.ranks[rng.IntN(len(l.ranks))])
				if other := l.ranks[rng.IntN(len(l.ranks))]; len(l.ranks) > 2*enough && other != l.odd[0] {
					l.odd = append(l.odd, other)
				}
			}
			out = append(out, l)
		}
	}
	return out
}

// someRanks draws ranks, in order.
func (p *Params) someRanks(rng *rand.Rand, n int) []int64 {
	var out []int64
	for _, r := range rng.Perm(p.Ranks)[:n] {
		out = append(out, int64(r))
	}
	slices.Sort(out)
	return out
}

func runName(n int) string { return fmt.Sprintf("run-%02d", n) }

// timeOf returns when a launch wrote its files.
func timeOf(commit, run int) int64 {
	const begin, day, hour = 1_760_000_000_000_000, 86_400_000_000, 3_600_000_000
	return begin + int64(commit)*day + int64(run)*hour
}
