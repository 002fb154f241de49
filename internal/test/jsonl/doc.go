// Package jsonl reads test data that has a JSON document in each line, plain or
// compressed with gzip.
package jsonl
