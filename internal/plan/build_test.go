package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/ashlar-mem/ashlar/settings"
)

func planOf(t *testing.T, config string, pairs ...string) (*planned, []string) {
	t.Helper()
	q := Question{Model: readModel(t, config), Options: options(t, pairs...), Settings: settings.Default()}
	p, assumed, err := q.plan(t.Context(), q.Options, 0)
	if err != nil {
		t.Fatal(err)
	}
	return p, assumed
}

// built is the most of weights that is live while the model is built, and the
// largest of them.
func built(l *ledger.Ledger) (peak, largest int64) {
	var live int64
	for i, e := range l.Events {
		if l.PhaseAt(i).Name != ledger.Build {
			break
		}
		switch x := &l.Tensors[max(e, ^e)]; {
		case x.Kind != ledger.Weight:
		case e < 0:
			live -= x.Bytes
		default:
			live += x.Bytes
			peak, largest = max(peak, live), max(largest, x.Bytes)
		}
	}
	return peak, largest
}

// Where ranks divide the weights each makes only its part: a model that is
// larger than a card can be built. What a step takes is the same.
func TestBuildSharded(t *testing.T) {
	for i, config := range short.Some(small, 2) {
		config = fmt.Sprintf(config, 4)
		for _, extra := range [][]string{nil, {"lora", "8"}} {
			for _, shard := range []string{"fsdp:4", "fsdp-mixed:4", "zero3:4"} {
				ask := append([]string{"batch", "2", "seq", "64", "shard", shard}, extra...)
				whole, _ := planOf(t, config, append(ask, "build", "whole")...)
				parts, assumed := planOf(t, config, ask...)
				if whole.requested != parts.requested {
					t.Errorf("%d %v: a step takes %d, built whole %d", i, ask, parts.requested, whole.requested)
				}
				all, largestWhole := built(whole.run.ledger)
				got, largest := built(parts.run.ledger)
				// zero.Init has one parameter whole for a moment.
				limit := all/4 + all/100
				if strings.HasPrefix(shard, "zero3") {
					limit += largestWhole
				} else if largest > largestWhole/4+1024 {
					t.Errorf("%d %v: a tensor of %d is made, the largest parameter has %d", i, ask, largest, largestWhole)
				}
				if got > limit {
					t.Errorf("%d %v: building takes %d of %d", i, ask, got, all)
				}
				if measured(parts.job) {
					t.Errorf("%d %v: said to be measured", i, ask)
				}
				if !slices.ContainsFunc(assumed, func(s string) bool { return strings.HasPrefix(s, "--build sharded: ") }) {
					t.Errorf("%v: --build is not among %q", ask, assumed)
				}
			}
		}
	}
}

func TestBuild(t *testing.T) {
	config := fmt.Sprintf(small[0], 2)
	for _, tt := range []struct {
		pairs   []string
		sharded bool
		refused string
	}{
		{nil, false, ""},
		{[]string{"build", "whole"}, false, ""},
		{[]string{"shard", "ddp:4"}, false, ""},
		{[]string{"shard", "zero2:4"}, false, ""},
		{[]string{"shard", "fsdp:1"}, false, ""},
		{[]string{"shard", "fsdp:1", "build", "sharded"}, true, ""},
		{[]string{"shard", "fsdp:4"}, true, ""},
		{[]string{"shard", "fsdp:4", "build", "whole"}, false, ""},
		{[]string{"shard", "zero3:4,tp:2"}, true, ""},
		{[]string{"build", "sharded"}, false, "build sharded is for ranks that divide the weights"},
		{[]string{"shard", "ddp:2", "build", "sharded"}, false, "build sharded is for ranks that divide the weights"},
		{[]string{"shard", "zero1:2", "build", "sharded"}, false, "build sharded is for ranks that divide the weights"},
		{[]string{"shard", "tp:2", "build", "whole", "generate", "3"}, false, "build is for mode train"},
	} {
		j, _, err := options(t, append([]string{"batch", "1", "seq", "64"}, tt.pairs...)...).Job(readModel(t, config))
		switch {
		case tt.refused != "":
			if err == nil || !strings.Contains(err.Error(), tt.refused) {
				t.Errorf("%v: %v, want %s", tt.pairs, err, tt.refused)
			}
		case err != nil:
			t.Errorf("%v: %v", tt.pairs, err)
		case j.Shard.BuildSharded != tt.sharded:
			t.Errorf("%v: sharded is %v", tt.pairs, j.Shard.BuildSharded)
		}
	}
}
