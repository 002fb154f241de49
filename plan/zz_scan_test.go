package plan

import (
	"fmt"
	"testing"
)

func TestZZScan(t *testing.T) {
	for k, config := range small {
		for _, how := range [][]string{{}, {"recompute", "full"}, {"generate", "3"}, {"optimizer", "adamw-foreach"}, {"attention", "eager"}, {"mask", "left"}} {
			c := fmt.Sprintf(config, 2)
			m := model(t, c)
			if m.Head != "causal" && len(how) > 0 && how[0] == "generate" {
				continue
			}
			for batch := 1; batch <= 2; batch++ {
			var last uint64
			n := 0
			for seq := 1; seq <= 210; seq++ {
				got := peak(t, t, c, append([]string{"batch", fmt.Sprint(batch), "seq", fmt.Sprint(seq)}, how...)...)
				if got < last {
					n++
					if n <= 6 {
						fmt.Printf("%s %v b%d: %d->%d tokens %d -> %d (%+d)\n", m.ModelType, how, batch, seq-1, seq, last, got, int64(got-last))
					}
				}
				last = got
			}
			if n > 0 { fmt.Println(k, "violations", n) }
			}
		}
	}
}
