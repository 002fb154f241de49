package text

import (
	"fmt"
	"io"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/plan"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// PlanRough writes a rough plan.
func PlanRough(w io.Writer, head PlanHead, d *plan.RoughDocument, style Style) error {
	p := &page{w: w, style: style}
	a := d.Rough
	if len(d.Cards) > 0 {
		p.verdict(roughCards(d))
	} else {
		p.verdict(roughText(head.Capacity, a))
	}
	p.wrapped("  ", "This plan is rough: "+Clean(a.Model)+" has no family here. For exact figures run")
	p.printf("    %s\n", a.Exact)
	if c := head.Capacity.Card; c != nil && c.Taken != "" && len(d.Cards) == 0 {
		p.wrapped("  ", c.Taken+".")
	}
	p.printf("\n")
	p.name("", head.Name)
	parameters := units.Count(a.Parameters)
	if a.ParametersLow < a.Parameters {
		unit, name := 1e6, "million"
		if a.Parameters >= 1e9 {
			unit, name = 1e9, "billion"
		}
		parameters = fmt.Sprintf("about %.1f to %.1f %s", float64(a.ParametersLow)/unit, float64(a.Parameters)/unit, name)
	}
	what := Clean(a.Model)
	if a.Parameters > 0 { // those of packed weights are not known
		what += ", " + parameters + " parameters"
	}
	p.wrapped("  ", what)
	if head.Options != "" {
		p.wrapped("  ", head.Options)
	}
	p.roughNeed(a)
	p.roughCards(d)
	p.roughParts(a)
	p.list("Assumed", a.Assumed)
	p.list("Not modelled", a.NotModelled)
	return p.err
}

// stateText names what is planned exactly.
func stateText(a *plan.Rough) string {
	for _, c := range a.Components {
		if c.Name == "optimizer state" || c.Name == "gradients" {
			return "weights and optimizer state"
		}
	}
	return "weights"
}

// roughText returns the verdict.
func roughText(room plan.Capacity, a *plan.Rough) string {
	alone := stateText(a) + " alone take " + units.SizeUp(a.State)
	if a.StateLow < a.State {
		alone = stateText(a) + " alone take at least " + units.SizeUp(a.StateLow)
	}
	if a.Available == nil {
		return roughNeeds(a, alone) + " Give --gpu or --limit to see whether that fits."
	}
	into := roomText(room, &plan.Outcome{TotalEstimated: a.TotalEstimated, Context: a.Context, Collectives: a.Collectives})
	of := " of " + units.Size(*a.Available)
	switch {
	case a.Fits != nil && *a.Fits:
		return fmt.Sprintf("FITS into %s, roughly: it needs at most %s%s.", into, units.SizeUp(*a.High), of)
	case a.Fits != nil && a.StateLow > *a.Available:
		return fmt.Sprintf("DOES NOT FIT into %s: %s%s, and activations come on top.", into, alone, of)
	case a.Fits != nil:
		return fmt.Sprintf("DOES NOT FIT into %s: it needs at least %s%s, roughly.", into, units.SizeUp(a.Low), of)
	case a.High == nil && a.Activations == nil:
		return fmt.Sprintf("MAY FIT into %s: %s%s; activations not planned.", into, alone, of)
	case a.High == nil:
		return fmt.Sprintf("MAY FIT into %s: it needs at least %s%s; a part of its activations is not planned.", into, units.SizeUp(a.Low), of)
	}
	return fmt.Sprintf("MAY FIT into %s: it needs from %s to %s%s.", into, units.SizeUp(a.Low), units.SizeUp(*a.High), of)
}

// roughNeeds says what is needed where nothing was named to fit into.
func roughNeeds(a *plan.Rough, alone string) string {
	switch {
	case a.High != nil:
		return fmt.Sprintf("It needs from %s to %s for the allocator.", units.SizeUp(a.Low), units.SizeUp(*a.High))
	case a.Activations != nil:
		return fmt.Sprintf("It needs at least %s for the allocator; a part of its activations is not planned.", units.SizeUp(a.Low))
	}
	return strings.ToUpper(alone[:1]) + alone[1:] + "; activations not planned."
}

// roughCards returns the verdict on several cards.
func roughCards(d *plan.RoughDocument) string {
	var fit, may []string
	for _, c := range d.Cards {
		switch {
		case c.Fits == nil:
			may = append(may, c.Name)
		case *c.Fits:
			fit = append(fit, c.Name)
		}
	}
	switch {
	case len(fit) == 0 && len(may) == 0:
		return "DOES NOT FIT on any of these cards."
	case len(may) == 0:
		return "FITS on " + strings.Join(fit, ", ") + "."
	case len(fit) == 0:
		return "MAY FIT on " + strings.Join(may, ", ") + "."
	}
	return "FITS on " + strings.Join(fit, ", ") + "; may fit on " + strings.Join(may, ", ") + "."
}

// roughNeed writes what is exact, and the range of the rest.
func (p *page) roughNeed(a *plan.Rough) {
	heading := "Exact, before any activation"
	if a.StateLow < a.State {
		heading = "At most, before any activation"
	}
	p.heading(heading, "")
	for _, c := range a.Components {
		p.line("  %-16s %12s", c.Name, units.Size(c.Bytes))
	}
	p.line("  %-16s %12s   %s", "together", units.Size(a.State), "at the peak of a step without activations")
	for _, b := range a.Beside {
		p.wrapped(fmt.Sprintf("  %-16s %12s   ", b.Where, units.Size(b.Bytes)), besideText(b))
	}
	p.heading("Rough", "")
	if x := a.Activations; x != nil {
		p.wrapped("  activations   ", fmt.Sprintf("from %s to %s, as %s has them", units.Size(x.Low), units.Size(x.High), x.Like))
	} else {
		p.line("  activations   not planned")
	}
	said := "at least " + units.SizeUp(a.Low)
	if a.High != nil {
		said = "from " + units.SizeUp(a.Low) + " to " + units.SizeUp(*a.High)
	}
	outside := "CUDA's context of " + units.Size(a.Context)
	if a.ContextEstimated {
		outside += " (estimated)"
	}
	if a.Collectives > 0 {
		outside += " and NCCL's " + units.Size(a.Collectives)
	}
	p.wrapped("  needed        ", said+" for the allocator; "+outside+" on top")
}

// roughCards writes a row for each card.
func (p *page) roughCards(d *plan.RoughDocument) {
	if len(d.Cards) == 0 {
		return
	}
	p.heading("Cards", "")
	for _, c := range d.Cards {
		fits := "may fit"
		if c.Fits != nil {
			fits = map[bool]string{true: "fits", false: "does not fit"}[*c.Fits]
		}
		p.line("  %-12s %12s   %s", c.Name, units.Size(c.Available), fits)
	}
}

// roughParts writes a row for each model of a pipeline.
func (p *page) roughParts(a *plan.Rough) {
	if len(a.Parts) < 2 {
		return
	}
	p.heading("Components", "")
	wide := 0
	for _, x := range a.Parts {
		wide = max(wide, width(x.Name))
	}
	for _, x := range a.Parts {
		how := "frozen"
		if x.Trained {
			how = "trained"
		}
		p.wrapped(fmt.Sprintf("  %-*s %12s   ", wide, Clean(x.Name), units.Size(x.Bytes)), fmt.Sprintf("%s, %s parameters, %s; from %s", Clean(x.Class), units.Count(x.Parameters), how, sourceText(x.Source)))
	}
}

func sourceText(source string) string {
	return map[string]string{"headers": "the headers of its files", "index": "the index of its files", "config": "its config"}[source]
}
