// Package checkpoint reads what is known of a model whose family is not: the
// names, types and shapes in the headers of its safetensors files, or their
// total size in an index, and its config. A pipeline of diffusers, a folder with
// a model_index.json, is read component by component.
package checkpoint
