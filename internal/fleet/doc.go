// Package fleet keeps the files of many ranks, runs and commits, has processes
// analyse each of them, and keeps the answers. Everything is in a store of
// package hub: files, queue and results.
//
// A file is known by its SHA-256. Its analysis is a job of a queue that delivers
// at least once; a result is created under the file's hash, the question and the
// question's version, and whoever comes second finds it there. So a result exists
// exactly once, however often its job was done. The questions over many files are
// in package answers.
package fleet
