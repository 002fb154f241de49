package plan

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/plan/config"
	"github.com/ashlar-mem/ashlar/plan/gpu"
	"github.com/ashlar-mem/ashlar/settings"
)

const llama8 = `{"model_type":"llama","hidden_size":4096,"intermediate_size":14336,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,"head_dim":128,"vocab_size":128256,"tie_word_embeddings":false,"max_position_embeddings":16384,"dtype":"bfloat16"}`

func TestZZ(t *testing.T) {
	m, err := config.Read(strings.NewReader(llama8))
	if err != nil {
		t.Fatal(err)
	}
	var o Options
	for _, kv := range [][2]string{{"batch", "2"}, {"seq", "4096"}, {"recompute", "full"}, {"attention", "flash"}} {
		if err := o.Set(kv[0], kv[1]); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		b := time.Now()
		q := Question{Model: m, Options: o, Settings: settings.Default(), Room: Room{Card: card("80GiB")}, Points: 80, NoLevers: true}
		j, _, _ := o.Job(m)
		e, err := preset517(context.Background(), j)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("exec", time.Since(b), len(e.ledger.Events))
		b = time.Now()
		p, err := q.planJob(context.Background(), j, 0)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("planjob", time.Since(b))
		b = time.Now()
		var a Answer
		p.answerLimit(context.Background(), &a)
		fmt.Println("limit", time.Since(b), a.SmallestLimit)
		b = time.Now()
		p.answerRange(context.Background(), &a)
		fmt.Println("range", time.Since(b))
		b = time.Now()
		q.NoLevers = false
		an, err := Ask(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("all", time.Since(b))
		an.Timeline = nil
		fmt.Printf("%+v\n", an)
	}
}

func TestYY(t *testing.T) {
	m, _ := config.Read(strings.NewReader(llama8))
	var o Options
	for _, kv := range [][2]string{{"batch", "2"}, {"seq", "4096"}, {"attention", "flash"}} {
		o.Set(kv[0], kv[1])
	}
	q := Question{Model: m, Options: o, Settings: settings.Default(), Room: Room{Card: card("120GiB")}}
	b := time.Now()
	r, err := FindRecompute(context.Background(), q)
	fmt.Println(time.Since(b), err)
	if r != nil {
		fmt.Printf("%+v\n%d\n", r.Best, r.Searched)
		for _, x := range r.Others {
			fmt.Printf("%+v\n", x)
		}
	}
	b = time.Now()
	l, err := FindLargest(context.Background(), q, "batch")
	fmt.Println(time.Since(b), l, err)
	b = time.Now()
	l, err = FindLargest(context.Background(), q, "seq")
	fmt.Println(time.Since(b), l, err)
}

func card(n string) *gpu.Card { c, _ := gpu.Parse(n); return &c }
