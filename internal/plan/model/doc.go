// Package model describes what to plan: a [Model] and how it is run ([Job]).
//
// It reads a model from config.json, the file in which Hugging Face's
// transformers keeps a model's shape.
//
// One fact has many spellings there: the width of the residual stream is
// hidden_size, n_embd or d_model; the number of experts has four names; a null
// head_dim means hidden_size / num_attention_heads in one family and is an
// error in the next. [Read] settles all of it by the rules of the
// configuration classes of transformers 5.17, so that the planner's modules
// read plain numbers and know no spellings.
//
// Four rules are kept:
//
//   - A field that is missing or null takes transformers' own default for that
//     family, and [Model.Assumed] says so. A file with nothing but a model_type
//     is therefore a model, as it is in transformers.
//   - A field that changes memory and is not understood is an error: a
//     quantisation, another family's experts, an unknown layer type. Ignoring
//     it would silently give a wrong answer.
//   - A field that transformers does not read for the family, or that a plan
//     leaves out, is listed in [Model.Ignored].
//   - An error is one line that names the field and says what to do.
//
// A multimodal file (gemma3, qwen3_5) is read through its text_config; the
// vision tower is not planned and is listed as ignored.
package model
