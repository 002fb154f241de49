// Webbuild builds the page of ashlar view from its sources in web: one script,
// one style sheet and the document that loads them. They go to
// internal/view/dist, from where package view embeds them. It also generates
// TypeScript types in web/src/types from the Go types of the server's documents.
//
//	go -C tools run ./webbuild          writes both
//	go -C tools run ./webbuild -check   fails if they are not what would be written
//
// It needs neither Node nor a network. The bundler is a Go library, and the few
// modules that the page uses are in web/vendor as published. Webbuild does not
// check types: npm run check in web does.
package main
