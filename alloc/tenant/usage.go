package tenant

// Usage is what a group's memory is used for.
type Usage struct {
	Limit    uint64        `json:"limit_bytes"`
	Reserved uint64        `json:"reserved_bytes"` // by all tenants, revocable blocks included
	Idle     uint64        `json:"idle_bytes"`     // guaranteed and not reserved
	Lent     uint64        `json:"lent_bytes"`     // reserved for revocable blocks
	Tenants  []TenantUsage `json:"tenants"`        // in the order in which they were added
}

// TenantUsage is one tenant's part.
type TenantUsage struct {
	Name      string `json:"name"`
	Guarantee uint64 `json:"guarantee_bytes"`
	Ceiling   uint64 `json:"ceiling_bytes"` // 0: none
	Priority  int    `json:"priority"`
	Reserved  uint64 `json:"reserved_bytes"`
	Borrowed  uint64 `json:"borrowed_bytes"` // reserved for revocable blocks
	// Trims is how often others had its cache released, TrimsCaused how often it
	// had theirs.
	Trims       int64 `json:"trims"`
	TrimsCaused int64 `json:"trims_caused"`
}

// Usage returns the figures of all tenants, all of one moment.
func (g *Group) Usage() Usage {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := &g.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	u := Usage{Limit: l.limit, Reserved: l.firm + l.lent, Idle: l.committed - l.firm, Lent: l.lent, Tenants: make([]TenantUsage, len(g.tenants))}
	for i, t := range g.tenants {
		a := &t.account
		u.Tenants[i] = TenantUsage{
			Name: t.name, Guarantee: a.guarantee, Ceiling: a.ceiling, Priority: t.priority,
			Reserved: a.reserved, Borrowed: a.borrowed, Trims: a.trims, TrimsCaused: a.trimsCaused,
		}
	}
	return u
}
