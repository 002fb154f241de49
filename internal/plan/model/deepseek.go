package model

// deepseekSilent are fields of deepseek's own code that transformers' does not
// read, or that change no tensor.
var deepseekSilent = []string{
	"num_nextn_predict_layers", "num_mtp_layers", "routed_scaling_factor", "qk_head_dim",
	"aux_loss_alpha", "seq_aux", "scoring_func", "ep_size", "moe_layer_freq",
}

// readMLA reads what both deepseek families have; the defaults that differ are
// the number of shared experts, an expert's width and the dense layers.
func (f *fields) readMLA(shared, width, dense int) {
	m := f.model
	m.MLA = &MLA{
		KVRank:  f.count(512, maxWidth, "kv_lora_rank"),
		NopeDim: f.count(128, maxWidth, "qk_nope_head_dim"),
		RopeDim: f.count(64, maxWidth, "qk_rope_head_dim"),
		VDim:    f.count(128, maxWidth, "v_head_dim"),
	}
	m.MLA.QRank, _ = f.optional(1536, maxWidth, "q_lora_rank")
	m.MLA.QKHeadDim = m.MLA.NopeDim + m.MLA.RopeDim
	// transformers overwrites head_dim with the rotary part, whatever it was.
	m.HeadDim = m.MLA.RopeDim
	f.used["head_dim"] = true
	m.MoE = &MoE{
		Intermediate:  f.count(width, maxWidth, "moe_intermediate_size"),
		SharedExperts: f.number(shared, 0, maxExperts, "n_shared_experts"),
	}
	m.MoE.SharedIntermediate = m.MoE.SharedExperts * m.MoE.Intermediate
	first := f.number(dense, 0, maxLayers, "first_k_dense_replace")
	m.MoE.Sparse = make([]bool, m.Layers)
	for i := range m.MoE.Sparse {
		m.MoE.Sparse[i] = i >= first
	}
	f.attentionBias(false)
	f.activation("silu", "hidden_act")
	f.uniform(FullAttention)
	f.rope(m.HeadDim)
	f.unbuilt("num_nextn_predict_layers", "num_mtp_layers")
}

// unbuilt lists layers for predicting further tokens. Released checkpoints have
// them and transformers leaves them out.
func (f *fields) unbuilt(names ...string) {
	for _, name := range names {
		if raw, _, st := f.find(name); st == given && !nothing(raw) {
			f.ignore(name, show(raw), "transformers does not build the extra prediction layers")
		}
	}
}

func readDeepseekV2(f *fields) {
	f.decoder(shape{vocab: 102400, hidden: 4096, intermediate: 11008, layers: 32, heads: 32, positions: 2048})
	f.kvOr()
	f.wholeHeads()
	f.model.MLPBias = f.flag(false, "mlp_bias")
	f.readMLA(2, 1407, 0)
	moe := f.model.MoE
	moe.Experts = f.count(64, maxExperts, "n_routed_experts", "num_experts")
	moe.TopK, _ = f.optional(0, maxExperts, "num_experts_per_tok")
	moe.NormTopK = f.flag(false, "norm_topk_prob")
	moe.TopKMethod = f.named("greedy", "topk_method")
	moe.Groups, _ = f.optional(0, maxExperts, "n_group")
	moe.TopKGroups, _ = f.optional(0, maxExperts, "topk_group")
	switch moe.TopKMethod {
	case "greedy":
	case "group_limited_greedy":
		f.groups(moe)
	default:
		f.fail("%stopk_method %q is not one of deepseek_v2's: it must be greedy or group_limited_greedy", f.at, moe.TopKMethod)
	}
}

func readDeepseekV3(f *fields) {
	f.decoder(shape{vocab: 129280, hidden: 7168, intermediate: 18432, layers: 61, heads: 128, positions: 4096})
	f.kv(128)
	f.readMLA(1, 2048, 3)
	f.model.Rope.Interleaved = f.flag(true, "rope_interleave")
	moe := f.model.MoE
	moe.Experts = f.count(256, maxExperts, "n_routed_experts", "num_local_experts")
	moe.TopK, _ = f.optional(8, maxExperts, "num_experts_per_tok")
	moe.NormTopK = f.flag(true, "norm_topk_prob")
	moe.Groups = f.count(8, maxExperts, "n_group")
	moe.TopKGroups = f.count(4, maxExperts, "topk_group")
	if raw, name, st := f.find("head_dim"); st == given {
		// Here the file's value is the last to be set.
		if got := f.whole(raw, name, 1, maxWidth); got != f.model.MLA.RopeDim {
			f.fail("%shead_dim is %d but qk_rope_head_dim is %d; deepseek_v3 takes head_dim for the rotary part: remove it",
				f.at, got, f.model.MLA.RopeDim)
		}
	}
	f.groups(moe)
}

// groups checks a router that first chooses groups of experts.
func (f *fields) groups(moe *MoE) {
	switch {
	case f.err != nil:
	case moe.Groups == 0 || moe.TopKGroups == 0:
		f.fail("the router chooses among groups of experts, but n_group or topk_group is not set: set both")
	case moe.Experts%moe.Groups != 0:
		f.fail("n_routed_experts %d does not divide into n_group %d groups", moe.Experts, moe.Groups)
	case moe.TopKGroups > moe.Groups:
		f.fail("topk_group %d is more than n_group %d", moe.TopKGroups, moe.Groups)
	case moe.TopK > moe.Experts/moe.Groups*moe.TopKGroups:
		f.fail("num_experts_per_tok %d is more than the %d experts of topk_group %d groups",
			moe.TopK, moe.Experts/moe.Groups*moe.TopKGroups, moe.TopKGroups)
	}
}
