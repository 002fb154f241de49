// Package safetensors reads what a checkpoint says about its tensors: names,
// types and shapes, without the weights.
//
// A .safetensors file begins with the length of its header in eight bytes,
// little end first, then the header, a JSON object of
//
//	"name": {"dtype": "BF16", "shape": [4096, 4096], "data_offsets": [0, 33554432]}
//
// and then the data that the offsets point into. A large checkpoint is several
// such files in a folder, with model.safetensors.index.json to say which tensor
// is in which file.
//
// Only headers are read, so that a checkpoint of hundreds of gigabytes takes
// milliseconds. A header is checked as it is read: offsets that do not fit
// the shape and type, overlap, leave gaps or lie beyond the end of the file are
// errors that name the tensor. [Layout] is the way back: it makes the header of a
// file to be written.
package safetensors
