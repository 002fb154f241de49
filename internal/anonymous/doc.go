// Package anonymous takes the names out of a snapshot, so that it can be shown to
// strangers and still gives the same answers.
//
// # What is gone
//
// Paths and names of files and functions, user_metadata, annotations, notes, and
// every field that PyTorch and our recorder do not write. A name becomes a word
// made of letters that a keyed hash gives: the same name is the same word
// everywhere in a file, so stacks stay what they are. The key, the salt, is random
// and is not kept, so nobody can find a name by hashing guesses. Files that belong
// together, such as those of ranks, can be given one salt.
//
// # What stays
//
// Sizes, addresses, streams, times, numbers of lines and devices, settings, the
// statistics and PyTorch's own error text; whether a frame is of the user's
// program, of a library, of PyTorch or of compiled code; and the few words by
// which the other packages tell a forward pass from a backward pass, an optimizer
// or a loss, such as _call_impl or torch/optim. They are in vocabulary.go.
// Numbers in user_metadata stay, because steps are counted by them.
//
// What stays can tell something too: the lines of a public library show which of
// its functions a stack went through, and sizes show the shape of a model.
package anonymous
