package plan

import (
	"context"
	"testing"

	"github.com/ashlar-mem/ashlar/settings"
)

// Ways to generate that no recording has are marked.
func TestUnmeasuredGeneration(t *testing.T) {
	const (
		llama = `{"model_type":"llama","hidden_size":64,"intermediate_size":96,"num_hidden_layers":2,"num_attention_heads":4,"vocab_size":300}`
		moe   = `{"model_type":"mixtral","hidden_size":64,"intermediate_size":96,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"num_local_experts":4,"num_experts_per_tok":2,"vocab_size":300}`
		t5    = `{"model_type":"t5","d_model":64,"d_kv":16,"d_ff":96,"num_layers":2,"num_heads":4,"vocab_size":300}`
	)
	for _, c := range []struct {
		config string
		call   bool
		want   bool
	}{{llama, false, true}, {llama, true, true}, {moe, false, true}, {moe, true, true}, {t5, false, false}, {t5, true, true}} {
		pairs := []string{"batch", "2", "seq", "64", "generate", "3"}
		if c.call {
			pairs = append(pairs, "generate-call", "true")
		}
		q := Question{Model: readModel(t, c.config), Options: options(t, pairs...), Settings: settings.Default(), NoLevers: true}
		a, err := Ask(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		if a.Measured != c.want {
			t.Errorf("%s, generate() %v: measured is %v", q.Model.ModelType, c.call, a.Measured)
		}
	}
}
