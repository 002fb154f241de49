// Package detect tells which malloc a running process really uses.
package detect
