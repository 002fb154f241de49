package plan

import (
	"context"
	"fmt"
)

// Settle searches for what a question leaves open and puts what it finds into
// the question's options: the largest batch or sequence if of names one, else
// the layers to recompute if those are to be the best. The searches are nil
// where there was nothing to search.
func Settle(ctx context.Context, q *Question, of string) (*Largest, *BestRecompute, error) {
	switch {
	case of != "":
		found, err := FindLargest(ctx, *q, of)
		if err != nil {
			return nil, nil, err
		}
		// If nothing fits, the answer is about the smallest that was tried.
		value := found.Value
		if value == 0 {
			value = found.Next
		}
		return found, nil, q.Options.Set(of, fmt.Sprint(value))
	case q.Options.Get("recompute") == Best:
		found, err := FindRecompute(ctx, *q)
		if err != nil {
			return nil, nil, err
		}
		q.Options = found.Best.Apply(q.Options)
		return nil, found, nil
	}
	return nil, nil, nil
}
