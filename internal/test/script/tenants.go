package script

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/alloc/tenant"
)

// seats are the tenants of a device, in the order in which they came.
type seats struct {
	group *tenant.Group // nil without tenants
	list  []*tenant.Tenant
	owner map[string]*tenant.Tenant // of blocks, by name
	late  bool                      // a request was made: no tenant may come any more
}

// tenant adds a tenant: tenant NAME [guarantee=SIZE] [ceiling=SIZE] [priority=N].
// The first one makes the group; its limit is that of the device.
func (r *Runner) tenant(words []string) error {
	if r.seats.late {
		return fmt.Errorf("%w: tenants come before the first request", ErrCommand)
	}
	var terms tenant.Terms
	for key, to := range map[string]*uint64{"guarantee": &terms.Guarantee, "ceiling": &terms.Ceiling} {
		if v, ok := option(words, key); ok {
			var err error
			if *to, err = size(v); err != nil {
				return err
			}
		}
	}
	priority, err := numberOption(words, "priority")
	if err != nil {
		return err
	}
	terms.Priority = int(priority)
	if r.seats.group == nil {
		limit, limited := r.Allocator.Limit()
		if !limited {
			limit = r.Device.TotalMemory()
		}
		if r.seats.group, err = tenant.New(r.Device, limit, tenant.Options{}); err != nil {
			return fmt.Errorf("%w: %w", ErrCommand, err)
		}
		r.seats.owner = map[string]*tenant.Tenant{}
	}
	t, err := r.seats.group.Add(words[0], terms, append([]alloc.Option{alloc.WithSettings(r.Allocator.Settings()), alloc.WithObserver(r.observe)}, r.Options...)...)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCommand, err)
	}
	r.seats.list = append(r.seats.list, t)
	return nil
}

// allocTenant allocates for the tenant that a line names. It reports whether there
// are tenants.
func (r *Runner) allocTenant(words []string, bytes, stream uint64) (bool, error) {
	name, named := option(words, "tenant")
	if r.seats.group == nil {
		if named {
			return false, fmt.Errorf("%w: there is no tenant %q: a line tenant %s comes before the first request", ErrCommand, name, name)
		}
		return false, nil
	}
	t := r.seats.group.Tenant(name)
	if t == nil {
		return true, fmt.Errorf("%w: no tenant %q: write tenant=NAME", ErrCommand, name)
	}
	addr, err := t.Malloc(bytes, stream)
	r.answer(err)
	var refused *tenant.OutOfMemoryError
	if errors.As(err, &refused) {
		r.Refused = refused
	}
	if err == nil && addr != 0 {
		r.blocks[words[0]], r.seats.owner[words[0]] = addr, t
	}
	return true, nil
}

// allocatorOf returns the allocator that has a block.
func (r *Runner) allocatorOf(block string) *alloc.Allocator {
	if t := r.seats.owner[block]; t != nil {
		return t.Allocator()
	}
	return r.Allocator
}

// Allocators returns all there are, with the tenants' names: the device's own, which
// has none, first.
func (r *Runner) Allocators() (all []*alloc.Allocator, names []string) {
	all, names = []*alloc.Allocator{r.Allocator}, []string{""}
	for _, t := range r.seats.list {
		all, names = append(all, t.Allocator()), append(names, t.Name())
	}
	return all, names
}

// Tenants returns what the tenants have; false if there are none.
func (r *Runner) Tenants() (tenant.Usage, bool) {
	if r.seats.group == nil {
		return tenant.Usage{}, false
	}
	return r.seats.group.Usage(), true
}

// emptyAll empties every cache.
func (r *Runner) emptyAll() error {
	all, _ := r.Allocators()
	var errs []error
	for _, a := range slices.Backward(all) {
		errs = append(errs, a.EmptyCache())
	}
	return errors.Join(errs...)
}
