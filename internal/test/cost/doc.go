// Package cost counts what code allocates. Where each look at a text makes a
// copy, that is a measure of work which does not depend on the machine's speed.
package cost
