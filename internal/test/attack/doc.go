// Package attack makes inputs that want to bring ashlar down, and judges what it
// makes of them. Inputs are made from real files by changes that keep their
// structure, so that they get past the readers; every one follows from its seed.
package attack
