package plan

import (
	"fmt"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/internal/plan/problem"
)

// ranks is how many ranks --shard asks for by a word, 0 for none.
func (o Options) ranks(word string) int64 {
	for part := range strings.SplitSeq(o.Get("shard"), ",") {
		if w, n, _ := numbered(part); w == word {
			return n
		}
	}
	return 0
}

// spread refuses what cannot be spread over ranks because of how the model is
// made, whatever its numbers.
func (r *request) spread() error {
	s, m := &r.job.Shard, r.model
	if t, kv := s.Tensor, max(m.KVHeads, 1); t > kv {
		r.assumed = append(r.assumed, fmt.Sprintf("--shard tp:%d: each of the %d key-value heads is on %d ranks", t, kv, t/kv))
	}
	if m.ViT != nil && s.Context > 1 {
		return problem.New("{shard} cp:%d: the sequences of vit are %d positions of a picture, which are not divided among ranks; leave cp out", s.Context, m.ViT.Tokens())
	}
	// Context parallelism comes first, sequence parallelism divides its parts.
	if n := max(s.Context, 1) * max(s.Sequence, 1); s.Context > 1 && s.Sequence > 1 && r.job.Seq%int64(n) != 0 {
		return problem.New("{shard} cp:%d with sp:%d: %d tokens cannot be divided among %d times %d ranks; give a {seq} that is a multiple of %d",
			s.Context, s.Sequence, r.job.Seq, s.Context, s.Sequence, n)
	}
	if r.job.LossChunk > 0 && r.job.Seq <= int64(max(s.Context, 1)) {
		return problem.New("{loss} chunked with one token on a rank: it has no next one to predict, so there is no loss to go back from; give a {seq} of %d or more", 2*max(s.Context, 1))
	}
	return nil
}

// undivided says why tensor parallelism cannot divide a model among t ranks;
// nothing if it can.
func undivided(m *model.Model, t int) string {
	kv := max(m.KVHeads, 1)
	switch {
	case m.Heads%t != 0:
		return fmt.Sprintf("%d heads cannot be divided among %d ranks", m.Heads, t)
	case kv%t != 0 && t%kv != 0:
		return fmt.Sprintf("%d key-value heads can neither be divided among %d ranks nor repeated", kv, t)
	case m.Intermediate%t != 0:
		return fmt.Sprintf("an MLP of width %d cannot be divided among %d ranks", m.Intermediate, t)
	case m.MoE != nil && m.MoE.Intermediate%t != 0:
		return fmt.Sprintf("experts of width %d cannot be divided among %d ranks", m.MoE.Intermediate, t)
	case m.MoE != nil && m.MoE.SharedIntermediate%t != 0:
		return fmt.Sprintf("shared experts of width %d cannot be divided among %d ranks", m.MoE.SharedIntermediate, t)
	case m.Linear != nil && (m.Linear.KeyHeads%t != 0 || m.Linear.ValueHeads%t != 0):
		return fmt.Sprintf("%d key and %d value heads of linear attention cannot be divided among %d ranks", m.Linear.KeyHeads, m.Linear.ValueHeads, t)
	}
	return ""
}

// tensorRanks names the numbers of ranks next to t that a model can be divided
// among.
func tensorRanks(m *model.Model, t int) string {
	return nearest(m.Heads, t, func(n int) bool { return undivided(m, n) == "" })
}

// nearest names the numbers next to n, up to a highest one, that are right.
func nearest(highest, n int, right func(int) bool) string {
	below, above := 0, 0
	for d := 2; d <= highest && above == 0; d++ {
		switch {
		case d == n || !right(d):
		case d < n:
			below = d
		default:
			above = d
		}
	}
	switch {
	case below > 0 && above > 0:
		return fmt.Sprintf("write %d or %d", below, above)
	case above > 0:
		return fmt.Sprintf("write %d", above)
	case below > 0:
		return fmt.Sprintf("write %d", below)
	}
	return "leave it out"
}
