package plan

import (
	"fmt"
	"strings"
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
	s, m := &r.j.Shard, r.m
	if m.ViT != nil && s.Context > 1 {
		return fmt.Errorf("--shard cp:%d: the sequences of vit are %d positions of a picture, which are not divided among ranks; leave cp out", s.Context, m.ViT.Tokens())
	}
	// Context parallelism comes first, sequence parallelism divides its parts.
	if n := max(s.Context, 1) * max(s.Sequence, 1); s.Context > 1 && s.Sequence > 1 && r.j.Seq%int64(n) != 0 {
		return fmt.Errorf("--shard cp:%d with sp:%d: %d tokens cannot be divided among %d times %d ranks; give a --seq that is a multiple of %d",
			s.Context, s.Sequence, r.j.Seq, s.Context, s.Sequence, n)
	}
	if r.j.LossChunk > 0 && r.j.Seq <= int64(max(s.Context, 1)) {
		return fmt.Errorf("--loss chunked with one token on a rank: it has no next one to predict, so there is no loss to go back from; give a --seq of %d or more", 2*max(s.Context, 1))
	}
	return nil
}
