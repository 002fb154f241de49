// Package save writes device memory to disk while the device keeps working.
//
// A [Saver] has its own stream and a ring of page-locked buffers. A save records
// an event on the program's stream; the saver's stream waits for it and copies
// piece after piece into the ring, and a goroutine writes the pieces to the file
// as they arrive. Neither the program nor its stream waits.
//
// # When memory may change again
//
// The memory must not change until it has been copied, which is long before it is
// on disk. [Pending.Copied] is closed then. A program that does not want to wait
// calls [Pending.Fence] before it queues work that changes the memory: the device
// then does that work after the copy. If neither will do, copy the memory on the
// device first and save the copy.
//
// # The file
//
// Files have the safetensors format. A file appears under its name when all of
// it is on disk: it is written under a temporary name in the same folder,
// synced, renamed, and the folder is synced. If anything fails before the rename,
// the temporary file is removed and an earlier file stays as it was;
// [Pending.Wait] returns the error. A process that is killed leaves a file called
// .save-*.tmp. A replaced file keeps its permissions, but not its owner. If the
// name is a symbolic link, its target is replaced. If it is anything else, such as
// a folder or a device, the save fails and leaves it alone.
//
// # When the device fails
//
// If the device cannot report whether a copy has ended, it may still write to the
// buffer at any time. The saver is then unusable: that save, the queued saves and
// all later calls of Save fail with the reason. Files already on disk are
// complete. Close the saver and make a new one, if the device still answers.
package save
