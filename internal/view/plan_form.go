package view

import (
	_ "embed"
	"encoding/json"
	"sync"

	"github.com/ashlar-mem/ashlar/internal/plan"
	"github.com/ashlar-mem/ashlar/internal/plan/cards"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// planForm is what the page needs to ask for a plan.
type planForm struct {
	Version   int          `json:"version"`
	MaxConfig int          `json:"max_config_bytes"`
	MaxValue  int          `json:"max_value_bytes"`
	Kinds     []planKind   `json:"kinds"`
	Options   []planOption `json:"options"`
	Heads     []string     `json:"heads"`
	Cards     []planCard   `json:"cards"`
	Shapes    []shape      `json:"shapes"`
	Ledgers   bool         `json:"ledgers"` // api/dry takes ledgers of dry runs
}

// planKind is a kind of run in the words of those who make one. Set are the
// options that distinguish it from the others, with the values to begin with; a
// question is of the kind with the most of them that it has. Own are the options
// that other kinds have not.
type planKind struct {
	Name  string            `json:"name"`
	Title string            `json:"title"`
	Set   map[string]string `json:"set"`
	Own   []string          `json:"own"`
	Why   string            `json:"why"` // it cannot be planned; empty if it can
}

var planKinds = []planKind{
	{Name: "train", Title: "Train", Set: map[string]string{}, Own: []string{}},
	{Name: "lora", Title: "LoRA", Set: map[string]string{"lora": "16"}, Own: adapterOptions},
	{Name: "qlora", Title: "QLoRA", Set: map[string]string{"lora": "16", "quant": "nf4-double"}, Own: adapterOptions},
	{Name: "serve", Title: "Serve", Set: map[string]string{"mode": string(model.Generate)}, Own: []string{}},
	{
		Name: "vllm", Title: "vLLM", Set: map[string]string{}, Own: []string{},
		Why: "The page does not plan vLLM yet: use ashlar plan --serve vllm on the command line.",
	},
}

var adapterOptions = []string{"lora", "lora-targets", "lora-dtype", "lora-as", "lora-dropout"}

// planOption is an option of plan.Catalogue: a switch if it has no value, else
// one of some words, some of which take a number, or a number, or a text.
type planOption struct {
	Name     string   `json:"name"`
	Value    string   `json:"value"`
	Usage    string   `json:"usage"`
	Words    []string `json:"words"`
	Numbered []string `json:"numbered"`
	Least    int64    `json:"least"`
	Most     int64    `json:"most"` // 0: it is no number
	Mode     string   `json:"mode"` // the only one it is for; empty: all
}

type planCard struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	Total uint64 `json:"total_bytes"`
}

// shape is a public model to begin with, and sizes that suit it.
type shape struct {
	Name   string            `json:"name"`
	Title  string            `json:"title"`
	Start  map[string]string `json:"start"`
	Config json.RawMessage   `json:"config"`
}

//go:embed shapes.json
var shapesJSON []byte

// shapes reads shapes.json once. The file is part of the program, so that a
// fault in it is a fault of the program; TestShapes finds it.
var shapes = sync.OnceValue(func() []shape {
	var all []shape
	if err := json.Unmarshal(shapesJSON, &all); err != nil {
		panic("view: shapes.json: " + err.Error())
	}
	return all
})

func newPlanForm(ledgers bool) planForm {
	f := planForm{Ledgers: ledgers, Version: planVersion, MaxConfig: maxConfig, MaxValue: maxValue, Kinds: planKinds, Heads: model.Heads(), Shapes: shapes()}
	for _, c := range plan.Catalogue() {
		o := planOption{Name: c.Name, Value: c.Value, Usage: c.Usage, Words: []string{}, Numbered: []string{}, Mode: string(c.Mode())}
		o.Words, o.Numbered = append(o.Words, c.Words()...), append(o.Numbered, c.Numbered()...)
		o.Least, o.Most = c.Bounds()
		f.Options = append(f.Options, o)
	}
	for _, c := range cards.List() {
		f.Cards = append(f.Cards, planCard{c.Name, c.Title, c.TotalBytes})
	}
	return f
}
