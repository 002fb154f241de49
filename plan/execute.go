package plan

import (
	"context"

	"github.com/ashlar-mem/ashlar/plan/hf"
	"github.com/ashlar-mem/ashlar/plan/job"
	"github.com/ashlar-mem/ashlar/plan/ledger"
)

// executed is a job that was run symbolically.
type executed struct {
	ledger      *ledger.Ledger
	parameters  int64
	assumed     []string
	notModelled []string
	uncertain   []Term
}

// Term is a part of a peak that is not certain, with the bytes that the peak may
// be lower or higher by because of it.
type Term struct {
	Name      string
	Low, High uint64
}

// executor runs jobs. Tests have their own.
type executor func(ctx context.Context, j *job.Job) (*executed, error)

// preset517 runs a job as transformers 5.17 does.
func preset517(ctx context.Context, j *job.Job) (*executed, error) {
	r, err := hf.Run(ctx, j)
	if err != nil {
		return nil, err
	}
	return &executed{ledger: r.Ledger, parameters: r.Count(), assumed: r.Assumed, notModelled: r.NotModelled}, nil
}
