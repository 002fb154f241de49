// Package detect tells which malloc a running process really uses.
//
// What is loaded says little. A library may be loaded and unused, two may be
// preloaded and one of them win, a file may be called what it is not, and
// several libraries export the same names. So the question is put where the
// program puts it: a call of malloc goes through a slot, a word in memory that
// the dynamic loader fills with the address of a function. The object that this
// address lies in is the answer, and it is known by functions that only it has.
//
// The slot is found as the loader finds it: the program's relocations name a
// symbol and a place. Objects are read from their files where these are still
// the same, else from the process: both look alike once addresses are
// translated, since only what the loader itself needs is read.
//
// Where there is no slot, less is known, and the answer says so:
//
//   - A slot that was never used leads to the loader, not to malloc. Then the
//     loader's own list of objects gives the first that has a malloc.
//   - The memory of a process may be forbidden where its maps are not. Then
//     that list is rebuilt from the files: the program, preloaded objects, what
//     these were linked with.
//   - A static program has no slots. Its symbols tell, and if they were
//     stripped, texts in its code.
//   - A Go program does not use malloc.
//
// Variables that tune an allocator are judged by the allocator: those whose
// names it does not contain, it does not read. Values are judged by its rules,
// as its source has them and the tests find them in the libraries themselves.
package detect
