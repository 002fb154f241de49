package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ashlar-mem/ashlar/internal/answer"
	"github.com/ashlar-mem/ashlar/internal/answer/policies"
	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/gpu"
	"github.com/ashlar-mem/ashlar/internal/guard"
	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/policy/placement"
	"github.com/ashlar-mem/ashlar/internal/present/text"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/snapshot/recorder"
)

// policiesOptions are the flags of policies.
type policiesOptions struct {
	whatif whatifOptions // settings, limit, device memory, on-oom, curve, json, device
	names  []string
	budget time.Duration
	access string
	costs  string
}

func newPolicies(std stdio) *cobra.Command {
	var o policiesOptions
	cmd := &cobra.Command{
		Use:   "policies FILE",
		Short: "Put a recorded run through the other allocators of the field",
		Long: `Policies makes the calls of a snapshot again with other allocators, as they
really are, and says for each how much memory it reserves at its peak, the
smallest limit under which it passes, what it wastes and what it asks of the
driver. First it says how many of the recorded events the model of PyTorch's own
allocator reproduces.

Policies:
  caching, expandable   PyTorch's allocator; with expandable segments
  best-fit, first-fit, next-fit
                        one range that grows at its end
  buddy                 powers of two
  slab                  four sizes for each doubling up to 1 MiB, best fit above
  binning               cub::CachingDeviceAllocator
  bfc, bfc-growth       TensorFlow's and JAX's, with one region or growing ones
  async:0, async:max    cudaMallocAsync's pool by its release threshold, which
                        may be any size; behind it may stand :no-follow,
                        :no-opportunistic and :no-internal
  static-plan, arena    oracles, which know the future
  lower-bound           the most bytes that are live at a time
  managed, managed:prefetch
                        managed memory on devices that are too small: a range

docs/policies.md has the rules of each and where they come from.

FILE is a memory snapshot of PyTorch with events, as pickle or JSON, compressed
with gzip, zstd or not; or - for standard input. It may also be a placement
problem: CSV with the columns id,lower,upper,size, in bytes, where a buffer is
live from lower on and no more at upper.

--access tells managed memory what is used: JSON lines of {"event", "addr",
"bytes", "write"}. --costs takes its costs from a document of ashlar gpu bench
--json.

Exit status: 0 answered, whatever the answer; 2 the file, a policy, a CONF or a
flag is wrong, or the command was interrupted, after printing what was known.`,
		Example: "  ashlar policies snapshot.pickle\n  ashlar policies snapshot.pickle --policy best-fit,bfc,async:max --limit 40GiB\n" +
			"  ashlar policies problem.csv --policy static-plan --budget 60s",
		Args: oneFile,
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&o.names, "policy", nil, "the policies, separated by commas; by default all `LIST`")
	flags.StringArrayVar(&o.whatif.confs, "set", nil, "settings of PyTorch's allocator to try beside them, as in PYTORCH_CUDA_ALLOC_CONF; may be given several times")
	flags.Var(&o.whatif.limit, "limit", "cap on reserved memory, or none; by default that of the recording")
	flags.Var(&o.whatif.memory, "device-memory", "device memory for the allocator, or none for unlimited; by default as the recording shows")
	o.whatif.onOOM = wordFlag{whatif.OnOOMDie, []string{whatif.OnOOMDie, whatif.OnOOMSkip}}
	flags.Var(&o.whatif.onOOM, "on-oom", "at a request that fails: die (end there), or skip (leave it out and continue)")
	flags.DurationVar(&o.budget, "budget", policies.DefaultBudget, "how long the search for a static plan may take")
	flags.StringVar(&o.access, "access", "", "what uses managed memory, JSON lines in `FILE`")
	flags.StringVar(&o.costs, "costs", "", "what it costs to move managed memory, a document of ashlar gpu bench --json in `FILE`")
	flags.IntVar(&o.whatif.curve, "curve", 0, "with --json: the memory curve of each policy in `N` points")
	flags.BoolVar(&o.whatif.json, "json", false, "print one JSON document")
	o.whatif.device = addDeviceFlag(cmd)
	addVersionFlag(cmd, &o.whatif.pytorch)
	cmd.RunE = asks(o.question, func(ctx context.Context, file string, q policies.Question) error { return o.run(ctx, std, file, q) })
	return cmd
}

// question reads the flags, as far as they do not depend on the file.
func (o *policiesOptions) question() (policies.Question, error) {
	w := &o.whatif
	q := policies.Question{Policies: o.names, SkipOOM: w.onOOM.value == whatif.OnOOMSkip, Points: w.curve, Budget: o.budget}
	runs := len(o.names) + len(w.confs)
	if o.names == nil {
		runs += len(policies.Names)
	}
	if o.budget <= 0 {
		return q, fmt.Errorf("--budget is %v: give a time such as 10s", o.budget)
	}
	if err := w.checkCurve(runs, "policies"); err != nil {
		return q, err
	}
	if err := policies.CheckNames(o.names); err != nil {
		return q, failure{fmt.Errorf("--policy: %w", err)}
	}
	var err error
	q.Settings, err = w.settings()
	return q, err
}

func (o *policiesOptions) run(ctx context.Context, std stdio, file string, q policies.Question) error {
	defer saveMemory()()
	if o.costs != "" {
		costs, err := readCosts(std, o.costs)
		if err != nil {
			return failure{err}
		}
		q.Costs = costs
	}
	std, problem, err := readProblem(ctx, std, file)
	if err != nil {
		return failed(ctx, err)
	}
	p := startProgress(std, 0, "policies tried")
	defer p.stop()
	q.Progress = p.update
	if problem != nil {
		return o.solve(ctx, std, file, problem, q, p)
	}
	f, t, why, err := readReplayable(ctx, std, file, o.whatif.device)
	if err != nil {
		return err
	}
	o.whatif.pytorch.apply(f)
	loaded := run.New(t, recorder.Read(f.Extra))
	loaded.NoSizes = true
	r, err := whatif.Check(ctx, f.Name, loaded)
	if err != nil {
		return failed(ctx, err)
	}
	if o.access != "" {
		if q.Accesses, err = readAccesses(std, o.access, r); err != nil {
			return failure{err}
		}
	}
	if err := r.OnlyReplays(ctx); err != nil {
		return failed(ctx, err)
	}
	q.Limit, q.Memory = whatif.Bounds(r, o.whatif.limit.bytes, o.whatif.memory.bytes)
	a, err := policies.Ask(ctx, r, q)
	p.stop()
	if err != nil {
		return failed(ctx, fmt.Errorf("%s: %w", f.Name, err))
	}
	return o.print(std, text.WhatIfHead{Subject: answer.NewSubject(f, t, why), Events: t.Events.Len()}, a)
}

// solve answers about a placement problem.
func (o *policiesOptions) solve(ctx context.Context, std stdio, file string, problem *placement.Problem, q policies.Question, p *progress) error {
	if o.access != "" {
		return failure{fmt.Errorf("--access: %s is a placement problem, which nobody accesses; leave it out", input.Name(file))}
	}
	none := func(b boundFlag) uint64 {
		if b.bytes == nil {
			return 0
		}
		return *b.bytes
	}
	q.Limit.Source = whatif.None
	if n := none(o.whatif.limit); n > 0 {
		q.Limit.Bound = whatif.Bound{Bytes: &n, Source: whatif.Given}
	}
	q.Memory = whatif.GivenMemory(none(o.whatif.memory))
	a, err := policies.AskProblem(ctx, problem, q)
	p.stop()
	if err != nil {
		return failed(ctx, fmt.Errorf("%s: %w", input.Name(file), err))
	}
	about := answer.Subject{File: input.Name(file), Contradictions: answer.Contradictions(nil)}
	return o.print(std, text.WhatIfHead{Subject: about, Events: len(problem.IDs)}, a)
}

func (o *policiesOptions) print(std stdio, head text.WhatIfHead, a *policies.Answer) error {
	err := printAnswer(std, o.whatif.json, policies.NewDocument(head.Subject, a), func(w io.Writer) error {
		return text.Policies(w, head, a, std.style())
	})
	return endAnswer(std, err, a.Interrupted, len(a.Results), len(a.NotRun), "policies")
}

// readProblem reads FILE if it is a placement problem: its name ends in .csv or
// .csv.gz, or it begins like one. Otherwise the problem is nil, and standard input
// is as it was. A pipe other than standard input can be read only once, so it is
// taken for a snapshot.
func readProblem(ctx context.Context, std stdio, file string) (stdio, *placement.Problem, error) {
	if err := std.agent.mayRead(file); err != nil {
		return std, nil, err
	}
	var in io.Reader = std.in
	if file != "-" {
		if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
			return std, nil, nil // whoever reads a snapshot says what is wrong
		}
		f, err := os.Open(file)
		if err != nil {
			return std, nil, nil
		}
		defer f.Close()
		in = f
	}
	r := bufio.NewReader(in)
	std.in = r
	type read struct {
		problem *placement.Problem
		err     error
	}
	done := make(chan read, 1)
	go func() {
		p, err := parseProblem(r, strings.HasSuffix(strings.TrimSuffix(file, ".gz"), ".csv"))
		done <- read{p, err}
	}()
	select {
	case <-ctx.Done(): // nobody may ever write into standard input
		return std, nil, context.Cause(ctx)
	case d := <-done:
		if d.err != nil {
			return std, nil, fmt.Errorf("%s: %w", input.Name(file), d.err)
		}
		return std, d.problem, nil
	}
}

// parseProblem reads a placement problem, or nothing if there is none; named says
// that there should be one.
func parseProblem(r *bufio.Reader, named bool) (*placement.Problem, error) {
	if begin, _ := r.Peek(2); bytes.Equal(begin, []byte{0x1f, 0x8b}) && named {
		unpacked, err := gzip.NewReader(r)
		if err != nil {
			return nil, err
		}
		r = bufio.NewReader(unpacked)
	}
	if begin, _ := r.Peek(len(placement.Header)); string(begin) != placement.Header && !named {
		return nil, nil
	}
	return placement.Read(r)
}

// readAccesses reads --access.
func readAccesses(std stdio, file string, r *run.Checked) ([]policies.Access, error) {
	f, err := openFor(std, file, "--access")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all, err := policies.ReadAccesses(bufio.NewReader(f), r)
	if err != nil {
		return nil, fmt.Errorf("--access %s: %w", file, err)
	}
	return all, nil
}

// maxCosts is far above any document of ashlar gpu bench.
const maxCosts = 16 // MiB

// readCosts reads --costs: a document of ashlar gpu bench --json.
func readCosts(std stdio, file string) (*policies.Costs, error) {
	if err := std.agent.mayRead(file); err != nil {
		return nil, err
	}
	data, err := guard.ReadFile(file, maxCosts, "document of ashlar gpu bench --json")
	if err != nil {
		return nil, fmt.Errorf("--costs: %w", err)
	}
	var b gpu.Bench
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(&b); err != nil {
		return nil, fmt.Errorf("--costs %s: it is no document of ashlar gpu bench --json: %w", file, err)
	}
	// There and back, of the largest size.
	perByte := func(kind string) float64 {
		rows := b.Find(gpu.GroupManaged, kind, gpu.PartAll)
		if len(rows) == 0 || rows[len(rows)-1].Size == nil || *rows[len(rows)-1].Size == 0 {
			return 0
		}
		last := rows[len(rows)-1]
		return last.Median / float64(2**last.Size)
	}
	c := &policies.Costs{OnDemand: perByte(gpu.CaseOnDemand), Prefetch: perByte(gpu.CasePrefetch)}
	if c.OnDemand <= 0 || c.Prefetch <= 0 {
		return nil, fmt.Errorf("--costs %s: it has no times of managed memory; write it with ashlar gpu bench --json", file)
	}
	return c, nil
}

// openFor opens the file of a flag.
func openFor(std stdio, file, flag string) (*os.File, error) {
	if err := std.agent.mayRead(file); err != nil {
		return nil, err
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return f, nil
}
