package playground

import (
	"fmt"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/units"
)

// sayTenant explains what a tenant is given.
func (g *game) sayTenant(name string) {
	usage, _ := g.runner.Tenants()
	for _, t := range usage.Tenants {
		if t.Name != name {
			continue
		}
		text := fmt.Sprintf("%s has an allocator of its own; together the tenants reserve at most %s.", name, units.Size(usage.Limit))
		if t.Guarantee > 0 {
			text += fmt.Sprintf(" %s of it are guaranteed to %s, whatever the others do.", units.Size(t.Guarantee), name)
		}
		if t.Ceiling > 0 {
			text += fmt.Sprintf(" It never gets more than %s.", units.Size(t.Ceiling))
		}
		g.say(sayTenants, "%s", text)
	}
}

// sayRefusal says what a tenant's part in a failure is.
func (g *game) sayRefusal() {
	if r := g.runner.Refused; r != nil {
		g.say(sayTenants, "%s", strings.TrimPrefix(r.Situation(), "Tenant "))
	}
}
