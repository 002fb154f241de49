// Plandiff shows where a plan differs from a recording of the real run.
//
//	go -C tools run ./plandiff llama                  what differs, phase by phase
//	go -C tools run ./plandiff llama -phase forward2  one phase; -phase backward means all of them
//	go -C tools run ./plandiff llama -min 1MiB        tensors from 1 MiB on
//	go -C tools run ./plandiff llama -with llama_sdpa another recording in the place of the plan
//	go -C tools run ./plandiff -all ['llama*' ...]    a line for each recording
//	go -C tools run ./plandiff -table [CASE ...]      the measured cases and the bars: the tables of docs/measured/plan.md
//	go -C tools run ./plandiff -predict FILE          the cases of tools/bench/plan/cases.json, before they are measured
//	go -C tools run ./plandiff -pack DIR              recordings as the script wrote them -> testdata/plan/runs
package main
