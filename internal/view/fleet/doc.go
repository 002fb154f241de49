// Package fleet answers what the screen Fleet of the page asks about many files:
// the table, the commits that grew, the causes of failures and the ranks of a run.
// It is apart from package view because the page without a server has one file at a
// time.
package fleet
