package plan

import (
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/settings"
)

// What a config has and a plan leaves out is said.
func TestLeftOutIsSaid(t *testing.T) {
	const text = `"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64, "vocab_size": 1000`
	for config, want := range map[string]string{
		`{"model_type": "gemma3", "text_config": {` + text + `}, "vision_config": {"hidden_size": 64}}`: "vision_config = vision tower: only the text model is planned",
		`{"model_type": "llama", "made_up": 3, ` + text + `}`:                                           "made_up = 3: the llama code of transformers does not read it",
		`{"model_type": "llama", ` + text + `}`:                                                         "",
	} {
		q := Question{Model: readModel(t, config), Options: options(t, "batch", "1", "seq", "64"), Settings: settings.Default(), NoLevers: true}
		if got := strings.Join(ask(t, q).NotModelled, "\n"); got != want {
			t.Errorf("%s: %q, want %q", config, got, want)
		}
	}
}
