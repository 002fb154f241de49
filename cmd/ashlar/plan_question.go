package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/guard"
	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/plan"
	"github.com/ashlar-mem/ashlar/internal/plan/cards"
	"github.com/ashlar-mem/ashlar/internal/plan/checkpoint"
	"github.com/ashlar-mem/ashlar/internal/plan/hub"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/internal/plan/recipe"
	"github.com/ashlar-mem/ashlar/settings"
)

// question reads the config, the flags and the files of other tools. It returns
// what the model is called.
func (o *planOptions) question(ctx context.Context, std stdio, file string) (plan.Question, *recipe.Recipe, string, error) {
	q := plan.Question{Options: o.run, Conf: o.conf}
	r, err := o.recipe(std)
	if err != nil {
		return q, r, file, failure{err}
	}
	if file == "" {
		if file = r.Model; file == "" {
			return q, r, file, fmt.Errorf("plan needs a CONFIG: %s names no model", o.trainer)
		}
		if err := guard.Check(file); err != nil {
			return q, r, file, failure{err}
		}
	}
	if file == "-" {
		q.Model, err = model.Read(std.in, model.WithHead(o.head))
	} else {
		q.Model, err = input.Unblocked(ctx, func() (*model.Model, error) { return o.open(std, &q, file) })
	}
	var unknown *model.UnknownError
	switch {
	case q.Checkpoint != nil:
		err = nil
	case file == "-" && errors.As(err, &unknown):
		q.Checkpoint, err = checkpoint.New(unknown), nil
	}
	if err != nil {
		return q, r, file, failed(ctx, err)
	}
	m := q.Model
	if q.Checkpoint != nil {
		m = plan.StandIn(q.Checkpoint)
	}
	if q.Options, err = r.Options(m, q.Options); err != nil {
		return q, r, file, failure{err}
	}
	q.Assumed = append(q.Assumed, r.Assumed()...)
	q.NotModelled = r.NotModelled()
	return q, r, file, o.room(ctx, std, &q)
}

// open reads a config from a file, a folder or the Hugging Face cache. What no
// family describes becomes the question's checkpoint.
func (o *planOptions) open(std stdio, q *plan.Question, file string) (*model.Model, error) {
	path := file
	if _, err := os.Stat(file); err != nil && hub.IsName(file) {
		if path, err = hub.Find(file, hub.Caches(os.Getenv)); err != nil {
			return nil, err
		}
		q.Assumed = append(q.Assumed, fmt.Sprintf("%s: from the Hugging Face cache, snapshot %s", file, filepath.Base(path)))
	}
	if err := std.agent.mayReadModel(path); err != nil {
		return nil, err
	}
	if checkpoint.Stands(path) {
		var err error
		q.Checkpoint, err = checkpoint.Open(path)
		return nil, err
	}
	m, err := model.Open(path, model.WithHead(o.head))
	var unknown *model.UnknownError
	if errors.As(err, &unknown) {
		q.Checkpoint, err = checkpoint.Open(path)
	}
	return m, err
}

// room reads what there is to fit into.
func (o *planOptions) room(ctx context.Context, std stdio, q *plan.Question) error {
	var err error
	if q.Capacity, err = capacity(o.gpu, o.limit); err != nil {
		return err
	}
	if q.Settings, err = allocatorSettings(o.conf); err != nil {
		return err
	}
	if o.weights != "" {
		if err := o.readWeights(ctx, std, q); err != nil {
			return failure{err}
		}
	}
	return nil
}

// capacity reads the card and the limit of a run that is yet to be made.
func capacity(gpu string, limit boundFlag) (c plan.Capacity, err error) {
	if gpu != "" {
		card, err := cards.Parse(gpu)
		if err != nil {
			return c, failure{fmt.Errorf("--gpu: %w", err)}
		}
		c.Card = &card
	}
	if limit.bytes != nil {
		c.Limit = *limit.bytes
	}
	return c, nil
}

// allocatorSettings reads --settings; nothing stands for the defaults.
func allocatorSettings(conf string) (settings.Settings, error) {
	if conf == "" {
		return settings.Default(), nil
	}
	s, err := whatif.ParseSetting(conf)
	if err != nil {
		return settings.Settings{}, failure{fmt.Errorf("--settings: %w", err)}
	}
	return s.Parsed, nil
}
