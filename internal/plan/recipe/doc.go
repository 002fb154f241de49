// Package recipe reads how a run is set up in other tools' words: TrainingArguments,
// axolotl and LLaMA-Factory files, accelerate's config, DeepSpeed's config, and
// the same keys as flags. It makes plan's options of them.
//
// Each key is used, known to have no effect on memory, known to have one that is
// not planned, or unknown; [plan.Source] lists which. What a plan cannot leave out
// without being about another run is an error that says what to do.
package recipe
