// Package parallel shares work between the processor's cores: a list of tasks,
// known beforehand and independent of each other, such as replays of one trace
// under several settings.
//
// Tasks begin in their order. Errors do not depend on which task ended first:
// of several, the caller gets that of the first task in the list.
package parallel
