// Package sdpa says which kernel torch.nn.functional.scaled_dot_product_attention
// runs.
//
// There are four, and they keep very different memory for the backward pass:
// cuDNN's and the flash kernel keep the inputs, the output and one number per
// row; the memory-efficient kernel also keeps a mask in the inputs' type; the
// math fallback keeps the whole matrix of probabilities. Torch goes through them
// in an order that depends on the card and takes the first that does not refuse
// the inputs. [Choose] follows the rules of PyTorch 2.11 (sdp_utils.cpp) and
// says why the ones before the chosen one refused.
//
// On Hopper and data-centre Blackwell cuDNN comes first, on every other card
// flash. TestRecorded compares with what PyTorch 2.11 picked on an H200 for
// 5,400 combinations; the rules for other cards are those of the source.
package sdpa
