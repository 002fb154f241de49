// Package view serves the page on which people see their GPU memory, and the
// API behind it.
//
// A [Server] listens on the loopback interface only. It shows runs: a run is one
// device of one file. Files given at the start are read one after the other in
// the background; others are dropped onto the page and come in the body of a
// request. No request can name a file to open.
//
// # What is computed where
//
// The page draws, this package computes. For each run it keeps the trace and a
// few indices over it (package timeline): the lifetimes of all blocks, the totals
// at any event, the segments at any event. It builds every answer from them, for
// the window, the moment or the filter that the page asks for, so the page never
// holds more than it shows. lod.go explains how a million events fit into the
// few thousand rectangles of a picture.
//
// The documents stats, explain, whatif, tune, diff and plan are those of the
// commands, byte for byte: both come from the packages under internal/answer and
// internal/plan. For the page they also contain their stacks as text (words.go).
// Slow answers are streamed in lines, with progress, and can be stopped (work.go).
//
// # Security
//
// Any program on the same machine can connect to a loopback port, and any web
// page in the user's browser can send requests there. So every path begins with
// a random token; the Host header must name the loopback address, which a
// rebound DNS name does not; requests that change something must come from the
// page itself; and the page loads nothing from elsewhere and no inline script.
// GET requests change nothing.
package view
