// Package tenants answers how recorded runs would share one GPU: the answers
// behind `ashlar tenants`.
//
// The calls of each recording are a [replay.Program]. [Ask] makes them side by
// side, by their recorded times or evenly, through a group of alloc/tenant, and
// then the same calls in other arrangements: through one engine for all, each
// alone under a share, each alone in a MIG instance. For each arrangement it finds
// the smallest limit under which no request fails.
package tenants
