package plan

import (
	"strconv"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
)

// layerNames tells the layer that a module is in by its name: the first number
// of its path, as in model.layers.3.mlp.
type layerNames struct {
	l    *ledger.Ledger
	seen map[ledger.Name]int
}

func newLayerNames(l *ledger.Ledger) *layerNames {
	return &layerNames{l: l, seen: map[ledger.Name]int{}}
}

// of is the number of the layer, or -1.
func (n *layerNames) of(module ledger.Name) int {
	k, ok := n.seen[module]
	if !ok {
		k = -1
		for part := range strings.SplitSeq(n.l.Text(module), ".") {
			if i, err := strconv.Atoi(part); err == nil && i >= 0 {
				k = i
				break
			}
		}
		n.seen[module] = k
	}
	return k
}
