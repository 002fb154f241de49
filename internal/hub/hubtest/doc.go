// Package hubtest serves a store with a port, as a cluster does, for tests.
package hubtest
