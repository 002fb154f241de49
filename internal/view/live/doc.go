// Package live answers what the screen Live of the page asks about running jobs:
// their state, their curves in as many points as are drawn, and the snapshots of
// alarms. It is apart from package view because the page without a server has no
// jobs.
package live
