package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/plan"
	"github.com/ashlar-mem/ashlar/internal/plan/cards"
	"github.com/ashlar-mem/ashlar/internal/test/plancompare"
	"github.com/ashlar-mem/ashlar/settings"
)

// predict plans the cases of tools/bench/plan/cases.json as `ashlar plan` does, for
// an H200, and prints a JSON line for each.
func predict(out *bufio.Writer, path string) error {
	cases, err := readCases(path)
	if err != nil {
		return err
	}
	lines := json.NewEncoder(out)
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		p := plancompare.Prediction{Case: name}
		if a, err := ask(cases[name]); err != nil {
			p.Error = err.Error()
		} else {
			p.Allocated, p.Reserved, p.Device = a.PeakAllocated, a.PeakReserved, a.PeakDevice
			p.SmallestLimit, p.Phase = a.SmallestLimit, a.BindingPhase
			p.Low, p.High = a.Range.Low, a.Range.High
		}
		if err := lines.Encode(p); err != nil {
			return err
		}
	}
	return nil
}

// readCases reads the cases with their models written out.
func readCases(path string) (map[string]plancompare.Fields, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var file struct {
		Models map[string]map[string]any     `json:"models"`
		Cases  map[string]plancompare.Fields `json:"cases"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, err
	}
	for name, c := range file.Cases {
		model, ok := c["m"].(string)
		if !ok || file.Models[model] == nil {
			return nil, fmt.Errorf("%s: no model %v", name, c["m"])
		}
		c["m"] = file.Models[model]
	}
	return file.Cases, nil
}

// ask plans a case as `ashlar plan --gpu h200` does, without levers.
func ask(c plancompare.Fields) (*plan.Answer, error) {
	q := plan.Question{NoLevers: true, Conf: c.Conf()}
	var err error
	if q.Model, err = c.Model(); err != nil {
		return nil, err
	}
	options, err := c.Options()
	if err != nil {
		return nil, err
	}
	for _, o := range options {
		if err := q.Options.Set(o[0], o[1]); err != nil {
			return nil, err
		}
	}
	card, ok := cards.Find("h200")
	if !ok {
		return nil, errors.New("no h200 among the cards")
	}
	q.Capacity.Card = &card
	if q.Settings, err = settings.Parse(q.Conf); err != nil {
		return nil, err
	}
	return plan.Ask(context.Background(), q)
}
