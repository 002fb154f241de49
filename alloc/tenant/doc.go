// Package tenant lets several users share one GPU inside one process, each with
// a guaranteed amount of memory and the rest for whoever needs it: a server beside
// a trainer, two models and a batch job.
//
//	g, err := tenant.New(device, 70<<30, tenant.Options{})
//	serve, err := g.Add("serve", tenant.Terms{Guarantee: 30 << 30, Priority: 10})
//	train, err := g.Add("train", tenant.Terms{})
//	addr, err := serve.Malloc(1<<30, stream)
//
// A [Tenant] is an unchanged [alloc.Allocator] over a driver of its own that asks
// the group's ledger before it takes memory. A cached block is handed out without
// asking anybody, and a tenant alone behaves as the allocator does.
//
// # The rule
//
// A tenant has a guarantee g, a ceiling c and r bytes reserved; the group has a
// limit L, and the guarantees together are at most L. A tenant gets d more bytes if
// r + d <= c and the sum of max(r, g) over all tenants, with r + d for this one,
// is at most L.
//
// So a request whose new segments or granules fit into g - r after the tenant's own cache was
// released is always served, whatever the others do, as long as the device has L
// bytes for the group and the tenant captures no graph meanwhile. [Options].Hold
// makes sure of the device for the guarantees. docs/tenants.md has the proof.
//
// Beyond its guarantee a tenant competes: the caches of those who have more than
// theirs are released, lowest priority first; then the request fails with an
// [*OutOfMemoryError].
//
// # Lending
//
// Memory that is guaranteed to one tenant and idle is lent only as revocable
// blocks: [Tenant.MallocRevocable]. When a request that the rule allows needs the memory, the
// callbacks of revocable blocks are called, lowest priority and youngest first,
// and the request waits until enough was freed or the deadline of [Options] has
// passed. For who lends, the guarantee holds up to that deadline.
//
// # What is counted
//
// What the tenants' allocators take from the driver, in pages of 2 MiB. The
// driver's context, libraries, a MemPool's own source and other processes are
// not: L must leave room for them.
package tenant
