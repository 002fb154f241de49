// Package jsonl reads test data with one JSON document per line, plain or
// compressed with gzip.
package jsonl
