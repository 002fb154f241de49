package plan_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/plan"
	"github.com/ashlar-mem/ashlar/internal/plan/cards"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/settings"
)

func ExampleAsk() {
	model, err := model.Read(strings.NewReader(`{"model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192,
		"num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 128256,
		"tie_word_embeddings": true, "dtype": "bfloat16"}`))
	if err != nil {
		panic(err)
	}
	card, err := cards.Parse("a100-40")
	if err != nil {
		panic(err)
	}
	q := plan.Question{Model: model, Settings: settings.Default(), Capacity: plan.Capacity{Card: &card}}
	for name, value := range map[string]string{"batch": "8", "seq": "2048", "attention": "flash"} {
		if err := q.Options.Set(name, value); err != nil {
			panic(err)
		}
	}
	a, err := plan.Ask(context.Background(), q)
	if err != nil {
		panic(err)
	}
	fmt.Println("fits:", *a.Fits, "binds in", a.BindingPhase, "mostly", a.Components[0].Name)
	for _, l := range a.Levers {
		if *l.Fits {
			fmt.Println("fits with", l.Flags)
		}
	}
	// Output:
	// fits: false binds in loss mostly activations
	// fits with --loss chunked:1024
	// fits with --batch 4 --accumulate 2
}
