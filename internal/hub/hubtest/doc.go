// Package hubtest serves stores for tests: with a port, as a cluster does, and by
// a nats-server that is not part of this program.
package hubtest
