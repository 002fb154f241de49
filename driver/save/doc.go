// Package save writes device memory to disk while the device goes on working.
//
// A [Saver] has a stream of its own and a ring of page-locked buffers. A save
// marks the work that was queued on the program's stream so far; the saver's
// stream waits for that mark, copies piece after piece into the ring, and a
// goroutine writes the pieces to the file as they arrive. Nobody waits for the
// program's stream and the program's stream waits for nobody.
//
// # When memory may change again
//
// What is saved must stay as it is until it was copied, which is long before it
// is on disk. [Pending.Copied] is closed then. A program that does not want to
// wait for it says [Pending.Fence] before it queues work that changes the
// memory: the device then does that work after the copy. If neither will do,
// copy the memory on the device first and save the copy.
//
// # The file
//
// Files have the safetensors format. A file appears under its name when all of
// it is on disk: it is written under a temporary name in the same folder,
// synced, renamed, and the folder is synced. If anything fails before the rename
// the temporary file is removed and what was there before stays; [Pending.Wait]
// says what failed. A process that is killed leaves a file called .save-*.tmp.
// A file that was there before keeps its permissions, not its owner; a symbolic
// link stays, and the file that it names is replaced. Anything else that has the
// name, a folder or a device, is left alone and is an error.
//
// # When the device fails
//
// If the device cannot say whether a copy has ended, the buffer may be written
// to at any time. The saver is of no use then: that save fails, the saves that
// wait for their turn fail, and so does every later call of Save, with the reason.
// Files that were on disk by then are whole. Close it and make another one, if
// the device still answers.
package save
