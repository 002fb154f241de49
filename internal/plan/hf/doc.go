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
//	llama.go      llama, mistral, qwen2, qwen3
//	moe.go        routers and experts, mixtral and qwen3_moe; balance.go: their loss
//	deepseek.go   deepseek_v2, deepseek_v3
//	gptoss.go     gpt_oss
//	gemma.go      gemma2, gemma3
//	qwen35.go     qwen3_5, qwen3_5_moe; delta.go, deltarule.go: their linear attention; sharedgate.go
//	gpt2.go, bert.go, vit.go, t5.go and t5attention.go; activation.go
//
// The order of statements matters: it is the order of allocations.
package hf
