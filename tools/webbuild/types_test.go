package main

import (
	"reflect"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/answer/stats"
	"github.com/ashlar-mem/ashlar/internal/findings"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/internal/view"
)

type sample struct {
	stats.Steps
	Name     string              `json:"name"`
	Sure     findings.Confidence `json:"sure"`
	Maybe    *float64            `json:"maybe"`
	Left     *int                `json:"left,omitempty"`
	List     []*stats.Missing    `json:"list"`
	Gaps     []*int64            `json:"gaps"`
	Pair     [2]uint64           `json:"pair"`
	Any      map[string]any      `json:"any"`
	Inline   struct{ A bool }    `json:"inline"`
	Frames   []timeline.Frame    `json:"frames"`
	Site     timeline.Site       `json:"-"`
	Unsaid   int                 `json:"-"`
	unsaid   int
	Untagged bool
}

const sampleText = `export interface Sample {
  annotation: string;
  complete: number;
  name: string;
  sure: Confidence;
  maybe: number | null;
  left?: number;
  list: Missing[];
  gaps: (number | null)[];
  pair: readonly [number, number];
  any: Record<string, unknown>;
  inline: { A: boolean };
  frames: Frame[] | null;
  site: string | null;
  Untagged: boolean;
}
`

func newGenerator() *generator {
	g := &generator{root: "../..", names: map[reflect.Type]string{}, modules: map[string]*module{}}
	for name, t := range view.DocumentTypes() {
		g.names[t] = name
	}
	return g
}

func TestTypes(t *testing.T) {
	g := newGenerator()
	m := g.module(reflect.TypeFor[sample]())
	m.reference(reflect.TypeFor[sample]())
	if got := m.types["Sample"].text; got != sampleText {
		t.Errorf("%s", got)
	}
	source := string(m.source())
	for _, want := range []string{
		"import type { Confidence } from './findings.gen';\n", "import type { Missing } from './stats.gen';\n", "import type { Frame } from './view.gen';\n",
	} {
		if !strings.Contains(source, want) {
			t.Errorf("%q is not in\n%s", want, source)
		}
	}
	if got, want := g.modules["findings"].types["Confidence"].text, "export type Confidence = 'certain' | 'likely' | 'guess';\n"; got != want {
		t.Errorf("%s", got)
	}
	if len(g.wrong) > 0 {
		t.Error(g.wrong)
	}
	_ = sample{}.unsaid
}

type selfWritten struct{}

func (selfWritten) MarshalJSON() ([]byte, error) { return nil, nil }

// What has no type on the page is told.
func TestTypesRefused(t *testing.T) {
	g := newGenerator()
	m := g.module(reflect.TypeFor[sample]())
	m.text(reflect.TypeFor[chan int]())
	m.text(reflect.TypeFor[selfWritten]())
	g.names[reflect.TypeFor[selfWritten]()], g.names[reflect.TypeFor[sample]()] = "Same", "Same"
	m.reference(reflect.TypeFor[selfWritten]())
	m.reference(reflect.TypeFor[sample]())
	for i, want := range []string{"chan int has no form", "main.selfWritten writes its own", "are both Same"} {
		if i >= len(g.wrong) || !strings.Contains(g.wrong[i].Error(), want) {
			t.Errorf("%v lacks %q", g.wrong, want)
		}
	}
}
