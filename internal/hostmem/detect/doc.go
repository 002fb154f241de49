// Package detect finds out which malloc a running process really uses.
//
// The list of loaded libraries says little. A library may be loaded and unused,
// one of two preloaded libraries wins, a file name may mislead, and several
// libraries export the same names. So detect looks where the program looks: a
// call of malloc goes through a slot, a word in memory that the dynamic loader
// fills with the address of a function. The object that contains this address is
// the answer; functions that only one allocator has identify it.
//
// The slot is found as the loader finds it: the program's relocations name a
// symbol and a place. Objects are read from their files if these are unchanged,
// else from the process. Both look alike once addresses are translated, since
// only what the loader itself needs is read.
//
// Without a usable slot less is known, and the answer says so:
//
//   - A slot that was never used leads to the loader, not to malloc. Then the
//     answer is the first object with a malloc in the loader's own list.
//   - The memory of a process may be unreadable although its maps are readable.
//     Then that list is rebuilt from the files: the program, preloaded objects,
//     and what these were linked with.
//   - A static program has no slots. Its symbols identify the allocator, or, if
//     it is stripped, strings in its code.
//   - A Go program does not use malloc.
//
// The allocator also decides about variables that tune it: it does not read a
// variable whose name it does not contain. Values are checked by the rules of
// its source, which tests compare with the libraries themselves.
package detect
