// Package parallel runs a fixed list of independent tasks on all cores, such as
// replays of one trace under several settings.
//
// Tasks start in order. If several fail, the caller gets the error of the first
// task in the list, whichever ended first.
package parallel
