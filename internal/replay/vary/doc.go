// Package vary makes programs that differ from a recorded one as its next run
// may: steps are left out, come in another order, or have slightly other sizes.
// What holds for all of them does not rest on chance in one recording.
//
// Everything a step allocates and frees moves with it. A tensor that outlives its
// step, such as a gradient that the next step frees, is handed on: if a step
// frees a tensor of an earlier step and leaves one of the same size behind, the
// two take the same place, and a step frees whatever is in that place when its
// turn comes. Other tensors that a step left behind go where the step goes, but
// those of the first step, such as the optimizer's state, stay in the first one.
// Older tensors are freed even if the step that freed them is left out.
//
// The same program, steps and seed give the same variations.
package vary
