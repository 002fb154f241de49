package main

import (
	"reflect"

	"github.com/ashlar-mem/ashlar/internal/answer/diff"
	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/answer/stats"
	"github.com/ashlar-mem/ashlar/internal/answer/tune"
	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/dry"
	"github.com/ashlar-mem/ashlar/internal/fleet/answers"
	"github.com/ashlar-mem/ashlar/internal/plan"
	"github.com/ashlar-mem/ashlar/internal/playground"
	"github.com/ashlar-mem/ashlar/internal/view/fleet"
	"github.com/ashlar-mem/ashlar/internal/view/live"
)

// documents are the roots of what the page gets, beside those of package view.
var documents = []reflect.Type{
	reflect.TypeFor[stats.Document](),
	reflect.TypeFor[explain.Document](),
	reflect.TypeFor[whatif.Document](),
	reflect.TypeFor[tune.Document](),
	reflect.TypeFor[diff.PairDocument](),
	reflect.TypeFor[diff.RanksDocument](),
	reflect.TypeFor[plan.Document](),
	reflect.TypeFor[dry.Document](),
	reflect.TypeFor[playground.Answer](),
	reflect.TypeFor[live.State](),
	reflect.TypeFor[live.Sketches](),
	reflect.TypeFor[live.Curves](),
	reflect.TypeFor[fleet.State](),
	reflect.TypeFor[answers.QueryDocument](),
	reflect.TypeFor[answers.GrowthDocument](),
	reflect.TypeFor[answers.CausesDocument](),
	reflect.TypeFor[answers.RanksDocument](),
}

// written are types that write their own JSON, and what the page gets of them,
// beside those of view.Shown.
var written = map[reflect.Type]reflect.Type{
	reflect.TypeFor[answers.Rows](): reflect.TypeFor[[]map[string]any](),
}

// present are the pointers that are never nil, nullable the lists that may be,
// beside call stacks. TestAnswers finds a document that says otherwise.
var (
	present = map[string]bool{
		"diff.PairDocument.a":       true,
		"diff.PairDocument.b":       true,
		"tune.Document.current":     true,
		"tune.Document.recommended": true,
	}
	nullable = map[string]bool{
		"explain.Document.notes":        true,
		"view.allocation.extra":         true,
		"view.allocation.free_frames":   true,
		"plan.PairCurve.planned_bytes":  true,
		"plan.PairCurve.measured_bytes": true,
		"plan.PairCurve.phases":         true,
	}
)
