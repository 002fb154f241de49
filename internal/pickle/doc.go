// Package pickle reads the data that Python's pickle module and PyTorch's C++
// pickler write, and executes nothing of it.
//
// A pickle is a program for a small stack machine. PyTorch's memory snapshots
// are such programs of up to several gigabytes: millions of dictionaries of
// one shape. Building those as objects is what makes other readers slow, so
// this one does not.
//
// # Values
//
// Everything on the machine's stack is a [Value]: one word, a tag and a
// payload. Small integers are the payload itself; large ones and floats stand
// in side tables; a text is its number in the caller's own table. No value
// holds a pointer, so the garbage collector has nothing to follow.
//
// # Hooks
//
// The moment a dictionary, list or tuple is complete, its items are shown to
// the caller's [Hook], most often while they still lie on the stack. The hook
// may answer with a record: a value that names a row of a table of its own.
// Stack and memo then hold the record in place of the container, and a row of
// consecutive records in a list is kept as one run. What the hook does not
// want is kept as a plain container, see [Machine.Items].
//
// A container is open from the opcode that makes it to the one that puts it
// into another. Python's pickler names an open container in the memo, PyTorch's
// a full one; both then mean the record. To use an open container is to put it
// into itself, which is an error, as is changing one that is no longer open.
//
// # Safety
//
// Opcodes that import, call or build objects are refused by name; see
// [ForbiddenError]. [Limits] bound nesting, memo, texts and sizes. Each error
// tells the byte offset. A file that ends early gives a [TruncatedError]: what
// the hook was shown until then is valid, and [Machine.Unfinished] tells what
// was being read.
//
// A [Machine] can also be fed by hand, which is how other formats of the same
// data share its hooks.
package pickle
