// Dist makes what users install, and tests it.
//
//	go -C tools run ./dist            everything, into dist
//	go -C tools run ./dist -host      only what this machine needs: one wheel
//	go -C tools run ./dist -check     installs and uses what is in dist
//
// It needs Go, and for libashlar.so a C and a C++ compiler for the system; no
// Python tool, no daemon, no network. The same sources and compilers give the
// same bytes: no file has a time, an owner or a path of the machine.
package main
