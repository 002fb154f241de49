//go:build js

// Ashlar-wasm is the server of ashlar view inside a page that needs none: a Web
// Worker runs it, and the page's questions are messages to that worker
// (web/src/worker.ts). make build embeds it into ashlar, which writes such pages
// with report --interactive.
//
// The worker's global object ashlar has what the two say to each other: the files
// to show (name, data), the functions ask and cancel that this program adds, and
// the functions head, chunk and end through which it answers a question by its
// number.
package main
