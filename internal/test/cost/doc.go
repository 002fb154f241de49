// Package cost counts what code allocates. For code that copies each text it
// reads, that measures work independently of the machine's speed.
package cost
