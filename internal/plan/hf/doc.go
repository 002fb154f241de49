// Package hf plans models of Hugging Face transformers 5.17 on PyTorch 2.11:
// the preset hf-5.17.
//
// Each family is written as transformers writes it, module by module and
// statement by statement, on the symbolic tensors of package eager. A variable
// here stands for a name in the Python program and is dropped where Python drops
// it. A file has one family, or one thing that families share:
//
//	run.go        a job from its beginning to its end
//	train.go      the training loop
//	recompute.go  which layers are checkpointed, by themselves or in groups
//	optimizer.go  Adam, SGD, Adafactor, fp32 copies of the weights
//	lora.go, save.go
//	ddp.go, fsdp.go, zero.go, parallel.go   more than one rank
//	generate.go   prompt and tokens; generatecall.go: transformers' generate(),
//	              and moebatched.go what it does with experts
//	module.go     parameters, Linear, Embedding
//	decoder.go    the causal language model around the layers
//	norm.go, rope.go, attention.go, sdpa.go, mask.go, loss.go, cache.go
//	llama.go      llama, mistral, qwen2, qwen3, and qwen2_moe
//	moe.go        routers and experts, mixtral and qwen3_moe; balance.go: their loss
//	deepseek.go   deepseek_v2, deepseek_v3
//	gptoss.go     gpt_oss
//	gemma.go      gemma2, gemma3
//	qwen35.go     qwen3_5, qwen3_5_moe; delta.go, deltarule.go: their linear attention; sharedgate.go
//	variants.go   gemma, phi3, granite, olmo2, smollm3, glm4, cohere2, starcoder2, gpt_neox: llama but for a
//	              step or two; ropes.go: their ways to turn queries and keys; opt.go
//	gpt2.go, bert.go (and roberta), distilbert.go, modernbert.go, vit.go, dinov2.go, towers.go (clip, siglip) and siglip.go,
//	t5.go and t5attention.go, bart.go, whisper.go; activation.go
//	tail.go       heads that score sequences and tokens
//
// The order of statements matters: it is the order of allocations.
package hf
