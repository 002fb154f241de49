// Arena runs steps whose scratch memory comes from an arena: every layer frees
// what only it needed, every step frees the rest at once.
package main
