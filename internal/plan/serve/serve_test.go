package serve

import (
	"context"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan/cards"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// small is a llama that any card holds.
const small = `{"model_type":"llama","architectures":["LlamaForCausalLM"],"torch_dtype":"bfloat16","hidden_size":2048,"intermediate_size":8192,
"num_hidden_layers":16,"num_attention_heads":32,"num_key_value_heads":8,"head_dim":64,"vocab_size":128256,"max_position_embeddings":131072,"tie_word_embeddings":true}`

func read(t testing.TB, config string) *model.Model {
	t.Helper()
	m, err := model.Read(strings.NewReader(config))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func card(t testing.TB, name string) cards.Card {
	t.Helper()
	c, err := cards.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestParseVersion(t *testing.T) {
	for text, want := range map[string]string{
		"0.10.1": "0.10.1", "v0.8.5.post1": "0.8.5", "0.9": "0.9.0", "0.11.0rc2": "0.11.0", "0.7.4.dev442+gfd8e055f": "0.7.4", "0.20.2rc0": "0.20.2",
	} {
		v, err := ParseVersion(text)
		if err != nil || v.String() != want {
			t.Errorf("%s: %v, %v; want %s", text, v, err, want)
		}
	}
	for _, text := range []string{"", "new", "0.x.1", "0.1.7", "0.2.4"} {
		if v, err := ParseVersion(text); err == nil {
			t.Errorf("%q is taken for %v", text, v)
		}
	}
}

// A card that holds the model holds more tokens with fp8, with more ranks and
// with a larger share.
func TestMoreRoom(t *testing.T) {
	base := Request{Model: read(t, small), Card: card(t, "l4"), MaxModelLen: 8192}
	plan := func(change func(*Request)) *Answer {
		r := base
		change(&r)
		a, err := Plan(context.Background(), r)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	a := plan(func(*Request) {})
	if a.Fits == nil || !*a.Fits || a.TokenBytes != 16*2*8*64*2 || a.BlockBytes != 16*a.TokenBytes {
		t.Fatalf("%+v", a)
	}
	if sum := int64(a.UsableBytes) - a.Available; sum <= 0 || a.Blocks != a.Available/a.BlockBytes {
		t.Errorf("%d blocks of %d bytes in %d", a.Blocks, a.BlockBytes, a.Available)
	}
	for name, b := range map[string]*Answer{
		"fp8":   plan(func(r *Request) { r.KVType = "fp8" }),
		"ranks": plan(func(r *Request) { r.TP = 2 }),
		"share": plan(func(r *Request) { r.Utilization = 0.95 }),
	} {
		if b.Tokens <= a.Tokens {
			t.Errorf("%s: %d tokens, not more than %d", name, b.Tokens, a.Tokens)
		}
	}
	if b := plan(func(r *Request) { r.TP = 16 }); b.TokenBytes != a.TokenBytes/8 {
		t.Errorf("with more ranks than KV heads a rank keeps %d bytes a token, want one head", b.TokenBytes)
	}
}

// The smallest card holds a request, and the next smaller one does not.
func TestSmallestCard(t *testing.T) {
	r := Request{Model: read(t, small), MaxModelLen: 131072}
	a, err := Plan(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	if a.Fits != nil || a.Smallest == "" || a.Card != a.Smallest || a.Concurrency < 1 {
		t.Fatalf("%+v", a)
	}
	all := bySize()
	for i, c := range all {
		if c.Name != a.Smallest || i == 0 {
			continue
		}
		r.Card = all[i-1]
		if b, err := Plan(context.Background(), r); err != nil || *b.Fits {
			t.Errorf("%s is smaller and holds it too: %v", r.Card.Name, err)
		}
	}
}

// A model with layers of two kinds: what its cache is made of depends on the
// version.
func TestGroups(t *testing.T) {
	m := read(t, `{"model_type":"gemma3_text","architectures":["Gemma3ForCausalLM"],"num_hidden_layers":62,"num_attention_heads":32,
"num_key_value_heads":16,"head_dim":128,"sliding_window":1024,"sliding_window_pattern":6}`)
	for _, x := range []struct {
		version          string
		groups, perGroup int64
		request          int64 // blocks of 32768 tokens
	}{
		{"0.8.5", 1, 62, 2048},
		{"0.10.1", 7, 10, 2048 + 6*(192+1)}, // 1023 + 2048 tokens are 192 blocks
		{"0.27.1", 7, 10, 2048 + 6*(192+1)},
	} {
		v, err := ParseVersion(x.version)
		if err != nil {
			t.Fatal(err)
		}
		r := Request{Model: m, Card: card(t, "l4"), Version: v, MaxModelLen: 32768, TP: 1}
		l := r.layOut()
		if n := l.perRequest(r.MaxModelLen, 2048); int64(len(l.groups)) != x.groups || l.perGroup != x.perGroup || n != x.request {
			t.Errorf("%s: %d groups of %d layers, %d blocks a request; want %d, %d, %d", x.version, len(l.groups), l.perGroup, n, x.groups, x.perGroup, x.request)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, x := range []struct {
		config string
		change func(*Request)
		say    string
	}{
		{small, func(r *Request) { r.MaxModelLen = 0 }, "max-model-len is missing"},
		{small, func(r *Request) { r.TP = 3 }, "give a divisor"},
		{`{"model_type":"phi3","num_attention_heads":40,"num_key_value_heads":10,"hidden_size":5120}`, func(r *Request) { r.TP = 4 }, "10 key-value heads"},
		{small, func(r *Request) { r.Utilization = 1.5 }, "at most 1"},
		{`{"model_type":"bert","architectures":["BertForMaskedLM"]}`, func(*Request) {}, "planned for decoders"},
		{`{"model_type":"llama","architectures":["LlamaForSequenceClassification"]}`, func(*Request) {}, "causal head"},
		{`{"model_type":"opt"}`, func(*Request) {}, "2048 positions"},
	} {
		r := Request{Model: read(t, x.config), Card: card(t, "l4"), MaxModelLen: 4096}
		x.change(&r)
		if _, err := Plan(context.Background(), r); err == nil || !strings.Contains(err.Error(), x.say) {
			t.Errorf("%q is not in %v", x.say, err)
		}
	}
}

// Every model of the logs can be planned, on one rank and on two, and two ranks
// share the weights.
func TestAllModels(t *testing.T) {
	f := readLogs(t)
	for name, m := range f.Models {
		var weights [2]uint64
		for i := range weights {
			r := Request{Model: read(t, string(m.Config)), Card: card(t, "h200"), MaxModelLen: 2048, TP: int64(i + 1)}
			if err := r.settle(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			a, err := r.on(context.Background(), r.Card)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if weights[i] = a.Parts[0].Bytes; a.TokenBytes <= 0 || a.Parts[1].Bytes == 0 {
				t.Errorf("%s: %d bytes a token, %d of activations", name, a.TokenBytes, a.Parts[1].Bytes)
			}
		}
		if part := float64(weights[1]) / float64(weights[0]); part < 0.49 || part > 0.6 {
			t.Errorf("%s: a rank of two has %.2f of the weights", name, part)
		}
	}
}
