package view

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"mime"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/ashlar-mem/ashlar/internal/answer"
	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/plan"
	"github.com/ashlar-mem/ashlar/internal/plan/cards"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/internal/view/http"
	"github.com/ashlar-mem/ashlar/settings"
)

// planVersion is the version of questions, and of links that hold them.
const planVersion = 1

// The largest question: a config with room for the longest that models have,
// and values of options that are longer than any that mean something.
const (
	maxConfig    = 256 << 10
	maxValue     = 1 << 10
	maxPlanBytes = 2*maxConfig + 64*maxValue // a config is a text within a text
)

// planQuestion is a question as the page puts it. The options have the names of
// plan.Catalogue; the rest are the flags of the command that are not options of
// the run.
type planQuestion struct {
	Version  int               `json:"version"`
	Name     string            `json:"name"` // of the config, as the answer calls it
	Config   string            `json:"config"`
	Options  map[string]string `json:"options"`
	GPU      string            `json:"gpu"`
	Limit    string            `json:"limit"`
	Settings string            `json:"settings"`
	Head     string            `json:"head"`
	Max      string            `json:"max"`
	Curve    int               `json:"curve"`
	Against  int               `json:"against"` // a run; 0 is none
}

// servePlan is api/plan. It needs no run, changes nothing and keeps nothing.
func (s *Server) servePlan(w http.ResponseWriter, r *http.Request, q *query) error {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return s.sendJSON(w, newPlanForm(s.opts.Dry != nil))
	case http.MethodPost:
	default:
		return methodNotAllowed(w, "GET, HEAD, POST")
	}
	if err := s.ownOrigin(r); err != nil {
		return err
	}
	stream := q.flag("stream")
	if q.err != nil {
		return q.err
	}
	asked, err := s.readPlan(w, r)
	if err != nil {
		return err
	}
	question, err := asked.question()
	if err != nil {
		return planProblem(err)
	}
	return s.perform(r.Context(), w, stream, func(ctx context.Context, out *lines) ([]byte, error) {
		return s.plan(ctx, asked, question, out)
	})
}

// plan answers a question. In lines the defaults of the options come first, and
// the plan itself before it is compared with a run: each is of use whatever comes
// of the rest.
func (s *Server) plan(ctx context.Context, asked *planQuestion, q plan.Question, out *lines) (_ []byte, err error) {
	p := &plan.Document{File: asked.Name}
	if out != nil {
		out.send("defaults", q.Options.Defaults(q.Model))
		var planned atomic.Int64
		q.Progress = func() { out.progress(progress{Done: int(planned.Add(1)), What: "jobs planned"}) }
	}
	if p.Max, p.Recompute, err = plan.Settle(ctx, &q, asked.Max); err != nil {
		return nil, planProblem(err)
	}
	q.Points = asked.Curve
	if p.Answer, err = plan.Ask(ctx, q); err != nil {
		return nil, planProblem(err)
	}
	p.Options = q.Options.String()
	if out != nil {
		if err := out.send("plan", p); err != nil || asked.Against == 0 {
			return nil, err
		}
	}
	if asked.Against != 0 {
		if p.Against, err = s.planAgainst(ctx, q, asked.Against, asked.Curve); err != nil {
			return nil, err
		}
	}
	if out != nil {
		return nil, out.send("plan", p)
	}
	return answer.JSON(p)
}

// planAgainst holds a plan against a run of the page.
func (s *Server) planAgainst(ctx context.Context, q plan.Question, id, points int) (*plan.Against, error) {
	r, err := s.runs.ready(id)
	if err != nil {
		return nil, err
	}
	if err := r.replayable(); err != nil {
		return nil, err
	}
	a, err := plan.Compare(ctx, q, r.loaded, points)
	if err != nil {
		return nil, planProblem(err)
	}
	if r.reason != "" {
		a.Notes = append(a.Notes, r.reason)
	}
	return a, nil
}

// readPlan reads the body of a question.
func (s *Server) readPlan(w http.ResponseWriter, r *http.Request) (*planQuestion, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, refuse(http.StatusUnsupportedMediaType, "send the question as application/json")
	}
	body, err := s.capped(w, r, maxPlanBytes).readAll()
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, largeConfig()
	}
	if err != nil {
		return nil, err
	}
	var q planQuestion
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&q); err != nil {
		return nil, badRequest("the question cannot be read: %v", err)
	}
	switch {
	case q.Version != planVersion:
		return nil, badRequest("the question is of version %d; this ashlar plans version %d: use the one that made the link", q.Version, planVersion)
	case len(q.Config) > maxConfig:
		return nil, largeConfig()
	case q.Curve < 0 || q.Curve > maxWidth:
		return nil, badRequest("curve is %d: write a whole number from 1 to %d", q.Curve, maxWidth)
	}
	if q.Name == "" {
		q.Name = "config.json"
	}
	q.Name, err = dropName(q.Name)
	return &q, err
}

func largeConfig() error {
	return refuse(http.StatusRequestEntityTooLarge, "the config is larger than %s: use ashlar plan on the command line", units.Size(maxConfig))
}

// question reads what the fields say. The errors are those of the command.
func (q *planQuestion) question() (plan.Question, error) {
	out := plan.Question{Conf: q.Settings, Settings: settings.Default()}
	for name, value := range map[string]string{"gpu": q.GPU, "limit": q.Limit, "settings": q.Settings, "head": q.Head, "max": q.Max} {
		if len(value) > maxValue {
			return out, badRequest("%s is longer than %s", name, units.Size(maxValue))
		}
	}
	var err error
	if out.Options, err = q.options(); err != nil {
		return out, err
	}
	if out.Model, err = model.Read(strings.NewReader(q.Config), model.WithHead(q.Head)); err != nil {
		return out, err
	}
	if q.GPU != "" {
		card, err := cards.Parse(q.GPU)
		if err != nil {
			return out, err
		}
		out.Capacity.Card = &card
	}
	if q.Limit != "" {
		if out.Capacity.Limit, err = whatif.ParseBound(q.Limit); err != nil {
			return out, badRequest("limit is %q: %v", q.Limit, err)
		}
	}
	if q.Settings != "" {
		s, err := whatif.ParseSetting(q.Settings)
		if err != nil {
			return out, err
		}
		out.Settings = s.Parsed
	}
	return out, nil
}

// options sets what is given, in the order of the catalogue.
func (q *planQuestion) options() (out plan.Options, err error) {
	var known []string
	for _, c := range plan.Catalogue() {
		known = append(known, c.Name)
		value := q.Options[c.Name]
		switch {
		case len(value) > maxValue:
			return out, badRequest("%s is longer than %s", c.Name, units.Size(maxValue))
		case value == "":
			continue
		}
		if err := out.Set(c.Name, value); err != nil {
			return out, badRequest("%s %v", c.Name, err)
		}
	}
	for name := range q.Options {
		if !slices.Contains(known, name) {
			return out, badRequest("there is no option %.40q: choose among %s", name, strings.Join(known, ", "))
		}
	}
	return out, nil
}

// planProblem answers with an error of package plan. Its text has the names of
// the page's fields.
func planProblem(err error) error {
	var known *problem
	if errors.As(err, &known) || errors.Is(err, context.Canceled) {
		return err
	}
	return badRequest("%v", err)
}
