package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ashlar-mem/ashlar/alloc/tenant"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// defaultTenant has the streams that are bound to no other.
const defaultTenant = "default"

// Where tenants are read from, and whether their guarantees are held.
const (
	tenantsVariable = "ASHLAR_TENANTS"
	holdVariable    = "ASHLAR_TENANTS_HOLD"
)

// tenantSpec is a tenant that is made with its device.
type tenantSpec struct {
	name  string
	terms tenant.Terms
}

// readTenants reads the environment.
func (l *library) readTenants(lookup func(string) (string, bool)) {
	text, _ := lookup(tenantsVariable)
	var err error
	if l.tenants, err = parseTenants(text); err != nil && l.failed == nil {
		l.failed = fmt.Errorf("%s=%q: %w", tenantsVariable, text, err)
	}
}

// parseTenants reads "serve:guarantee=30GiB,priority=10;default:ceiling=40GiB".
func parseTenants(text string) (specs []tenantSpec, err error) {
	for part := range strings.SplitSeq(text, ";") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		name, terms, _ := strings.Cut(part, ":")
		s := tenantSpec{name: strings.TrimSpace(name)}
		if s.name == "" {
			return nil, fmt.Errorf("%q has no name: write NAME:guarantee=SIZE", part)
		}
		for term := range strings.SplitSeq(terms, ",") {
			if term = strings.TrimSpace(term); term == "" {
				continue
			}
			if err := s.read(term); err != nil {
				return nil, fmt.Errorf("tenant %s: %w", s.name, err)
			}
		}
		specs = append(specs, s)
	}
	return specs, nil
}

func (s *tenantSpec) read(term string) (err error) {
	key, value, _ := strings.Cut(term, "=")
	switch key {
	case "guarantee":
		s.terms.Guarantee, err = units.ParseMemory(value)
	case "ceiling":
		s.terms.Ceiling, err = units.ParseMemory(value)
	case "priority":
		s.terms.Priority, err = strconv.Atoi(value)
	default:
		err = fmt.Errorf("%q is no term: write guarantee=SIZE, ceiling=SIZE or priority=N", term)
	}
	return err
}

// addTenants gives a new device the tenants of the environment.
func (l *library) addTenants(d *device, drv driver.Driver) error {
	if len(l.tenants) == 0 {
		return nil
	}
	if err := limitGroup(d, drv); err != nil {
		return err
	}
	for _, s := range l.tenants {
		if s.name == defaultTenant {
			if err := d.tenant.Resize(s.terms); err != nil {
				return err
			}
			continue
		}
		if _, err := l.addSlot(d, s.name, s.terms); err != nil {
			return err
		}
	}
	return nil
}

// limitGroup gives a group what its device has for it now.
func limitGroup(d *device, drv driver.Driver) error {
	free, _, err := drv.MemInfo()
	if err != nil {
		return err
	}
	return d.group.SetLimit(d.group.Usage().Reserved + free)
}

// mayAddSlot refuses a tenant or region that would begin in the middle of a capture, and so outside of it. The caller holds the lock.
func (l *library) mayAddSlot(what string) error {
	if l.recording.Load() > 0 {
		return fmt.Errorf("%s cannot be made while a CUDA graph is captured: make it before", what)
	}
	return nil
}

// addSlot makes a tenant, for callers that hold the lock.
func (l *library) addSlot(of *device, name string, terms tenant.Terms) (*device, error) {
	if l.nextSlot == maxSlots {
		return nil, fmt.Errorf("a process can make %d regions and tenants, not more; those that were closed count", maxSlots-maxDevices)
	}
	d, err := l.makeSlot(l.nextSlot, of.number, of.group, of.mover, name, terms)
	if err != nil {
		return nil, err
	}
	l.slots[d.index].Store(d)
	l.nextSlot++
	return d, nil
}

// tenantLimit sets what the tenants of a device have together.
func (l *library) tenantLimit(n int, bytes uint64) error {
	d, err := l.device(n)
	if err != nil {
		return err
	}
	return d.group.SetLimit(bytes)
}

// createTenant makes a tenant of a device. With the first one the group gets what
// the device has free now as its limit, unless it has one.
func (l *library) createTenant(n int, name string, terms tenant.Terms) error {
	d, err := l.device(n)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.mayAddSlot("tenant " + name); err != nil {
		return err
	}
	if d.group.Usage().Limit == tenant.Unlimited {
		if err := limitGroup(d, d.group.Driver()); err != nil {
			return err
		}
	}
	_, err = l.addSlot(d, name, terms)
	return err
}

// tenantOf returns the tenant of a name on a device.
func (l *library) tenantOf(n int, name string) (*device, error) {
	all, err := l.ofDevice(n)
	if err != nil {
		return nil, err
	}
	for _, d := range all {
		if d.tenant.Name() == name {
			return d, nil
		}
	}
	return nil, fmt.Errorf("device %d has no tenant %q", n, name)
}

func (l *library) resizeTenant(n int, name string, terms tenant.Terms) error {
	d, err := l.tenantOf(n, name)
	if err != nil {
		return err
	}
	return d.tenant.Resize(terms)
}

// deleteTenant gives a tenant's memory and guarantee back, and its streams to the
// default tenant.
func (l *library) deleteTenant(n int, name string) error {
	if name == defaultTenant {
		return errors.New("the default tenant cannot be deleted")
	}
	d, err := l.tenantOf(n, name)
	if err != nil {
		return err
	}
	l.front.mode(d.index, true)
	d.flush(nil)
	before, err := l.stats(n)
	if err == nil {
		err = d.close()
	}
	if err != nil {
		d.setMode(l.frontCache())
		return err
	}
	own := d.stats().Map()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keepCounts(n, own, before)
	l.front.unbind(n, d.index)
	l.slots[d.index].Store(nil)
	return nil
}

// close gives the slot's memory back. What lies in the host's memory is in use, too.
func (d *device) close() error {
	if d.space != nil {
		if s := d.space.Stats(); s.Host+s.Dropped > 0 {
			if n := d.alloc.Usage().Active; n > 0 {
				return &tenant.InUseError{Tenant: d.tenant.Name(), Bytes: n}
			}
		}
	}
	return d.tenant.Close()
}

// bindStream has the requests on a stream go to a tenant.
func (l *library) bindStream(n int, name string, stream uint64) error {
	d, err := l.tenantOf(n, name)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.front.bind(n, stream, d.index)
}

// tenantStatsJSON is the document of ashlar_tenant_stats_json: the group, or the
// statistics of one tenant.
func (l *library) tenantStatsJSON(n int, name string) (string, error) {
	if name == "" {
		d, err := l.device(n)
		if err != nil {
			return "", err
		}
		text, err := json.Marshal(d.group.Usage())
		return string(text), err
	}
	d, err := l.tenantOf(n, name)
	if err != nil {
		return "", err
	}
	doc := nested(d.stats().Map())
	doc["ashlar"] = d.tierStats(false)
	text, err := json.Marshal(doc)
	return string(text), err
}
