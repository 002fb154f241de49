package eager

// batchNormSpace is the workspace that cuDNN 9.19 takes to normalize a batch
// in training, or for the gradients of that. Contiguous tensors need none. With
// the channels last, blocks reduce tiles of 64 channels by some rows, and leave
// two fp32 figures a channel for the last block to add up. No case measured has
// a reserve.
func batchNormSpace(shape []int64, channelsLast bool, t DType, backward bool) int64 {
	if !channelsLast {
		return 0
	}
	channels := shape[1]
	rows := product(shape) / channels
	tile, cell, head := int64(160), int64(64*2*4+4), int64(1072)
	if t == Float32 {
		tile = 64
	}
	if backward {
		tile, cell, head = 96, 64*2*4, 1056
	}
	return head + ceil(channels, 64)*(cell*ceil(rows, tile)+4)
}
