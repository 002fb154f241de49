package page

import (
	"strconv"
	"strings"
)

// Fill writes what the run has into an address: OOM is its last failure, else
// its last event; FROM and TO are a twentieth of the run around it.
func (p *Page) Fill(hash string) (string, error) {
	var m struct {
		Events int   `json:"events"`
		OOMs   []int `json:"ooms"`
	}
	if err := p.Value("fetch('api/meta?run=1').then((r) => r.json())", &m); err != nil {
		return "", err
	}
	at := m.Events - 1
	if n := len(m.OOMs); n > 0 {
		at = m.OOMs[n-1]
	}
	from, to := max(0, at-m.Events/25), min(m.Events, at+m.Events/100)
	return strings.NewReplacer("OOM", strconv.Itoa(at), "FROM", strconv.Itoa(from), "TO", strconv.Itoa(to)).Replace(hash), nil
}
