package model

// ModernBert is what modernbert adds.
type ModernBert struct {
	NormBias             bool
	HeadBias             bool // of the Linear before a classifier or the decoder
	DecoderBias          bool
	MeanPooling          bool // a sequence is classified by the mean of its states
	ClassifierActivation string
}

func readRoberta(f *fields) {
	f.bertLike(50265)
}

func readDistilBert(f *fields) {
	m := f.model
	m.Vocab = f.count(30522, maxVocab, "vocab_size")
	m.Hidden = f.count(768, maxWidth, "dim", "hidden_size")
	m.Layers = f.count(6, maxLayers, "n_layers", "num_hidden_layers")
	m.Heads = f.count(12, maxWidth, "n_heads", "num_attention_heads")
	m.Intermediate = f.count(3072, maxWidth, "hidden_dim")
	m.MaxPositions = f.count(512, maxPositions, "max_position_embeddings")
	m.Tied = f.flag(true, "tie_word_embeddings")
	m.ResidualDropout = f.share(0.1, "dropout")
	m.EmbeddingDropout = m.ResidualDropout
	m.AttentionDropout = f.share(0.1, "attention_dropout")
	m.QKVBias, m.OutBias, m.MLPBias, m.Bidirectional = true, true, true, true
	f.activation("gelu", "activation")
	f.plainHeads()
	f.wholeHeads()
	f.uniform(FullAttention)
	f.labels()
}

func readModernBert(f *fields) {
	m := f.model
	m.Vocab = f.count(50368, maxVocab, "vocab_size")
	m.Hidden = f.count(768, maxWidth, "hidden_size")
	m.Layers = f.count(22, maxLayers, "num_hidden_layers")
	m.Heads = f.count(12, maxWidth, "num_attention_heads")
	m.Intermediate = f.count(1152, maxWidth, "intermediate_size")
	m.MaxPositions = f.count(8192, maxPositions, "max_position_embeddings")
	m.Tied = f.flag(true, "tie_word_embeddings")
	m.EmbeddingDropout = f.share(0, "embedding_dropout")
	m.AttentionDropout = f.share(0, "attention_dropout")
	m.ResidualDropout = f.share(0, "mlp_dropout")
	f.attentionBias(false)
	m.MLPBias = f.flag(false, "mlp_bias")
	m.GatedMLP, m.Bidirectional = true, true
	f.activation("gelu", "hidden_activation")
	m.ModernBert = &ModernBert{
		NormBias: f.flag(false, "norm_bias"), HeadBias: f.flag(false, "classifier_bias"), DecoderBias: f.flag(true, "decoder_bias"),
		MeanPooling: f.named("cls", "classifier_pooling") == "mean", ClassifierActivation: f.named("gelu", "classifier_activation"),
	}
	f.known("classifier_activation", m.ModernBert.ClassifierActivation)
	f.plainHeads()
	f.wholeHeads()
	m.SlidingWindow = f.count(128, maxPositions, "local_attention") / 2
	step := f.count(3, maxLayers, "global_attn_every_n_layers")
	types := make([]LayerType, m.Layers)
	for i := range types {
		types[i] = FullAttention
		if i%step > 0 {
			types[i] = SlidingAttention
		}
	}
	f.layers(types, "layers slide, but for each that global_attn_every_n_layers counts")
	if f.flag(false, "sparse_prediction") {
		f.fail("%ssparse_prediction predicts masked tokens alone, and how many those are is not known: set it to false", f.at)
	}
	f.rope(m.HeadDim)
	f.labels()
}

func readBart(f *fields) {
	f.pairOf(pair{vocab: 50265, hidden: 1024, layers: 12, heads: 16, feed: 4096, dropout: 0.1})
	f.model.MaxPositions = f.count(1024, maxPositions, "max_position_embeddings")
}

func readWhisper(f *fields) {
	f.pairOf(pair{vocab: 51865, hidden: 384, layers: 4, heads: 6, feed: 1536})
	m := f.model
	m.MaxPositions = f.count(448, maxPositions, "max_target_positions")
	m.Audio = &Audio{Mels: f.count(80, maxWidth, "num_mel_bins"), Positions: f.count(1500, maxPositions, "max_source_positions")}
}

// pair is the defaults of an encoder and a decoder.
type pair struct {
	vocab, hidden, layers, heads, feed int
	dropout                            float64
}

// pairOf reads what bart and whisper share.
func (f *fields) pairOf(p pair) {
	m := f.model
	m.Vocab = f.count(p.vocab, maxVocab, "vocab_size")
	m.Hidden = f.count(p.hidden, maxWidth, "d_model", "hidden_size")
	m.Layers = f.count(p.layers, maxLayers, "encoder_layers", "num_hidden_layers")
	m.Heads = f.count(p.heads, maxWidth, "encoder_attention_heads", "num_attention_heads")
	m.Intermediate = f.count(p.feed, maxWidth, "encoder_ffn_dim")
	m.Tied = f.flag(true, "tie_word_embeddings")
	m.UseCache = f.flag(true, "use_cache")
	m.ResidualDropout = f.share(p.dropout, "dropout")
	m.EmbeddingDropout = m.ResidualDropout
	m.AttentionDropout = f.share(0, "attention_dropout")
	m.QKVBias, m.OutBias, m.MLPBias = true, true, true
	f.activation("gelu", "activation_function")
	m.Bart = &Bart{
		DecoderLayers:       f.count(p.layers, maxLayers, "decoder_layers"),
		DecoderHeads:        f.count(p.heads, maxWidth, "decoder_attention_heads"),
		DecoderIntermediate: f.count(p.feed, maxWidth, "decoder_ffn_dim"),
		ActivationDropout:   f.share(0, "activation_dropout"),
	}
	for _, name := range []string{"encoder_layerdrop", "decoder_layerdrop"} {
		if f.share(0, name) > 0 {
			f.fail("%s leaves out layers by chance, which is not planned: set it to 0", f.at+name)
		}
	}
	f.plainHeads()
	f.wholeHeads()
	f.uniform(FullAttention)
	f.labels()
	if f.err == nil && m.Hidden%m.Bart.DecoderHeads != 0 {
		f.fail("the hidden size %d is not a multiple of the %d heads of the decoder", m.Hidden, m.Bart.DecoderHeads)
	}
}
