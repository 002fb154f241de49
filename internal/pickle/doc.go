// Package pickle reads the data that Python's pickle module and PyTorch's C++
// pickler write. It executes none of it.
//
// A pickle is a program for a small stack machine. PyTorch's memory snapshots
// are such programs of up to several gigabytes: millions of dictionaries of the
// same shape. Other readers are slow because they build them as objects; this one
// does not.
//
// # Values
//
// Everything on the machine's stack is a [Value]: one word with a tag and a
// payload. A small integer is the payload itself; large integers and floats are in
// side tables; a text is its number in the caller's own table. No value
// holds a pointer, so the garbage collector has nothing to follow.
//
// # Hooks
//
// As soon as a dictionary, list or tuple is complete, the caller's [Hook] sees its
// items, usually while they are still on the stack. The hook may return a record:
// a value that names a row of the hook's own table. Stack and memo then hold the
// record in place of the container, and consecutive records in a list are kept as
// one run. A container that the hook does not take is kept as it is; see
// [Machine.Items].
//
// A container is open from the opcode that makes it to the one that puts it into
// another. Python's pickler stores an open container in the memo, PyTorch's a
// complete one; both then mean the record. Using an open container would put it
// into itself, which is an error; so is changing one that is no longer open.
//
// # Safety
//
// Opcodes that import, call or build objects are refused by name; see
// [ForbiddenError]. [Limits] bound nesting, memo, texts and sizes. Each error has
// its byte offset. A file that ends early gives a [TruncatedError]: what the hook
// saw until then is valid, and [Machine.Unfinished] returns what was being read.
//
// A [Machine] can also be driven without a [Decoder], so readers of other formats
// of the same data can share its hooks.
package pickle
