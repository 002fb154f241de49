// Package safetensors reads the names, types and shapes of a checkpoint's tensors,
// without the weights.
//
// A .safetensors file begins with the length of its header in eight little-endian
// bytes, followed by the header, a JSON object of
//
//	"name": {"dtype": "BF16", "shape": [4096, 4096], "data_offsets": [0, 33554432]}
//
// and by the data that the offsets point into. A large checkpoint is a folder of
// several such files, with model.safetensors.index.json to map each tensor to its
// file.
//
// Only headers are read, so a checkpoint of hundreds of gigabytes takes
// milliseconds. Headers are checked: offsets that do not fit the shape and type,
// overlap, leave gaps or lie beyond the end of the file are errors that name the
// tensor. [Layout] does the reverse: it makes the header of a file to be written.
package safetensors
