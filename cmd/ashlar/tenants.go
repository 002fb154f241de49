package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ashlar-mem/ashlar/internal/answer/tenants"
	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/plan/cards"
	"github.com/ashlar-mem/ashlar/internal/present/text"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/spelling"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/snapshot/recorder"
)

// tenantsOptions are the flags of tenants.
type tenantsOptions struct {
	limit   sizeFlag
	tenants []string
	clock   wordFlag
	onOOM   wordFlag
	against []string
	json    bool
}

func newTenants(std stdio) *cobra.Command {
	var o tenantsOptions
	cmd := &cobra.Command{
		Use:   "tenants --limit SIZE --tenant NAME=FILE[,TERMS] [--tenant ...]",
		Short: "Predict how recorded runs would share one GPU, with guarantees",
		Long: `Tenants plays recorded runs side by side in one process, each as a tenant: it has
a guarantee that it gets whatever the others do, and shares the rest. It says how
many requests of each fail, what it reserves, and how often the caches of others
were released; then the same calls in other arrangements, and the smallest limit
under which each passes.

A tenant is written NAME=FILE, and after commas
  guarantee=SIZE  memory that it gets whatever the others do; 0 by default
  ceiling=SIZE    memory that it never exceeds; none by default
  priority=N      whose cache goes first: the lowest; 0 by default
  start=T         when it begins: a number of calls of the longest run, or under
                  --clock time a time such as 90s
  repeat=N        it is made N times, one after the other

--clock event stretches all runs to the length of the longest; --clock time plays
them by their recorded times. The allocators have the recorded settings with
expandable segments.

--against names the arrangements to compare with
  shared   one allocator for all of them, as in a process today
  hard     each alone under a share: what it needs, or its part of the limit
  mig:GPU  each alone in the smallest MIG instance of that GPU which holds it

FILE is a memory snapshot of PyTorch with events, as pickle or JSON, compressed
with gzip, zstd or not.

Exit status: 0 answered, whatever the answer; 2 a file or a flag is wrong.`,
		Example: "  ashlar tenants --limit 9GiB --tenant serve=serve.pickle,guarantee=2GiB,priority=10 --tenant train=train.pickle\n" +
			"  ashlar tenants --limit 70GiB --tenant a=a.pickle,repeat=10 --tenant b=b.pickle,start=5000 --against shared,mig:h100 --json",
		Args: noFile,
	}
	flags := cmd.Flags()
	flags.Var(&o.limit, "limit", "memory that the tenants have together")
	flags.StringArrayVar(&o.tenants, "tenant", nil, "a run and its terms, `NAME=FILE`, and after commas guarantee=SIZE, ceiling=SIZE, priority=N, start=T, repeat=N; give one for each")
	o.clock = wordFlag{tenants.ByEvent, []string{tenants.ByEvent, tenants.ByTime}}
	flags.Var(&o.clock, "clock", "how the runs are played side by side: event (evenly) or time (as recorded)")
	o.onOOM = wordFlag{whatif.OnOOMDie, []string{whatif.OnOOMDie, whatif.OnOOMSkip}}
	flags.Var(&o.onOOM, "on-oom", "at a request that fails: die (its run ends, and what it holds is freed), or skip (leave it out)")
	flags.StringSliceVar(&o.against, "against", []string{tenants.Shared, tenants.Hard}, "arrangements to compare with: shared, hard, mig:GPU; none for none")
	flags.BoolVar(&o.json, "json", false, "print one JSON document")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		q, err := o.question()
		if err != nil {
			return err
		}
		quietPipe()
		return o.run(cmd.Context(), std, q)
	}
	return cmd
}

func noFile(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%q: give files as --tenant NAME=FILE", args[0])
	}
	return nil
}

// question reads the flags, but no files.
func (o *tenantsOptions) question() (*tenants.Question, error) {
	q := &tenants.Question{Clock: o.clock.value, SkipOOM: o.onOOM.value == whatif.OnOOMSkip}
	if o.limit.value != nil {
		q.Limit = *o.limit.value
	}
	for _, t := range o.tenants {
		r, err := parseTenant(t, q.Clock)
		if err != nil {
			return nil, fmt.Errorf("--tenant %w", err)
		}
		q.Runs = append(q.Runs, r)
	}
	for _, a := range o.against {
		name, gpu, named := strings.Cut(a, ":")
		switch {
		case a == "none" && len(o.against) == 1:
			continue
		case a == "none":
			return nil, fmt.Errorf("--against %s: none goes with no other", strings.Join(o.against, ","))
		case name == tenants.MIG && named:
			g, err := dividedGPU(gpu)
			if err != nil {
				return nil, fmt.Errorf("--against %s: %w", a, err)
			}
			if q.GPU != nil && q.GPU.Title != g.Title {
				return nil, fmt.Errorf("--against %s: one GPU at a time: give one mig:GPU", strings.Join(o.against, ","))
			}
			q.GPU = g
		case named || name != tenants.Shared && name != tenants.Hard:
			return nil, fmt.Errorf("--against %q: give shared, hard, mig:GPU such as mig:h100, or none", a)
		}
		if !slices.Contains(q.Against, name) {
			q.Against = append(q.Against, name)
		}
	}
	return q, q.Check()
}

// dividedGPU returns a card with its MIG instances.
func dividedGPU(name string) (*tenants.GPU, error) {
	c, err := cards.Parse(name)
	var profiles []cards.MIGProfile
	var source string
	if err == nil {
		profiles, source = c.MIG()
	}
	if profiles == nil { // a card that has none does not help, so none is named
		return nil, fmt.Errorf("MIG profiles are known of %s", strings.Join(cards.MIGCards(), ", "))
	}
	g := &tenants.GPU{Title: c.Title, Source: source}
	for _, p := range profiles {
		g.Instances = append(g.Instances, tenants.Instance{Name: p.Name, Bytes: p.Bytes})
	}
	g.Fits = func(of []int) bool {
		var chosen []cards.MIGProfile
		for _, i := range of {
			chosen = append(chosen, profiles[i])
		}
		return cards.MIGFits(chosen)
	}
	return g, nil
}

// tenantKeys are what may stand after the file of a tenant.
var tenantKeys = []string{"guarantee", "ceiling", "priority", "start", "repeat"}

// parseTenant reads NAME=FILE and the terms after it. A name of a file may have
// commas too.
func parseTenant(s, clock string) (*tenants.Run, error) {
	name, rest, ok := strings.Cut(s, "=")
	if !ok || name == "" || rest == "" {
		return nil, fmt.Errorf("%q: write NAME=FILE, such as serve=serve.pickle,guarantee=2GiB", s)
	}
	r := &tenants.Run{Name: name}
	parts := strings.Split(rest, ",")
	given := map[string]bool{}
	for len(parts) > 1 {
		key, value, ok := strings.Cut(parts[len(parts)-1], "=")
		if !ok {
			break
		}
		if !slices.Contains(tenantKeys, key) {
			return nil, fmt.Errorf("%s: %q is no term of a tenant: write %s%s", name, key, oneOf(tenantKeys), spelling.DidYouMean(key, tenantKeys))
		}
		if given[key] {
			return nil, fmt.Errorf("%s: %s is given twice", name, key)
		}
		given[key] = true
		if err := setTerm(r, key, value, clock); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", name, key, err)
		}
		parts = parts[:len(parts)-1]
	}
	r.File = strings.Join(parts, ",")
	return r, nil
}

func setTerm(r *tenants.Run, key, value, clock string) (err error) {
	switch key {
	case "guarantee":
		r.Guarantee, err = units.ParseMemory(value)
	case "ceiling":
		if r.Ceiling, err = units.ParseMemory(value); err == nil && r.Ceiling == 0 {
			err = errors.New("it is 0; leave it out for none")
		}
	case "priority":
		if r.Priority, err = strconv.Atoi(value); err != nil {
			err = noNumber(err, value, "is no whole number")
		}
	case "start":
		r.Start, err = parseStart(value, clock)
	case "repeat":
		if r.Repeat, err = strconv.Atoi(value); err != nil || r.Repeat < 1 || r.Repeat > 1000 {
			err = fmt.Errorf("%q is no number from 1 to 1000", value)
		}
	}
	return err
}

// noNumber says why a text is not taken as a number.
func noNumber(err error, value, otherwise string) error {
	if errors.Is(err, strconv.ErrRange) {
		return fmt.Errorf("%s is too large", value)
	}
	return fmt.Errorf("%q %s", value, otherwise)
}

// parseStart reads when a run begins.
func parseStart(value, clock string) (float64, error) {
	if clock == tenants.ByEvent {
		n, err := strconv.ParseUint(value, 10, 32)
		if err != nil {
			return 0, noNumber(err, value, "is no number of calls; for a time give --clock time too")
		}
		return float64(n), nil
	}
	d, err := time.ParseDuration(value)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is no time such as 90s or 500ms", value)
	}
	return float64(d.Microseconds()), nil
}

func (o *tenantsOptions) run(ctx context.Context, std stdio, q *tenants.Question) error {
	defer saveMemory()()
	p := startProgress(std, len(q.Runs), "files read")
	defer p.stop()
	for i, r := range q.Runs {
		f, t, _, err := readReplayable(ctx, std, r.File, &deviceFlag{number: -1})
		if err != nil {
			return err
		}
		loaded := run.New(t, recorder.Read(f.Extra))
		loaded.NoSizes = true
		if r.Checked, err = whatif.Check(ctx, f.Name, loaded); err != nil {
			return failed(ctx, err)
		}
		r.Contradictions = f.Contradictions
		p.update(i+1, len(q.Runs))
	}
	a, err := tenants.Ask(ctx, q)
	p.stop()
	if err != nil {
		return failed(ctx, err)
	}
	return printAnswer(std, o.json, a, func(w io.Writer) error { return text.Tenants(w, a, std.style()) })
}
