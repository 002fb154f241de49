// Webbuild makes the page of ashlar view from its sources in web: one script,
// one style sheet and the document that loads them, in internal/view/dist, from
// where package view embeds them. It also makes the TypeScript types of what the
// page gets from the server, in web/src/types, from the Go types of the
// documents.
//
//	go -C tools run ./webbuild          writes both
//	go -C tools run ./webbuild -check   fails if they are not what would be written
//
// It needs neither Node nor a network. The bundler is a Go library, and the few
// modules that the page uses are kept in web/vendor as they were published.
// Types are not looked at here: npm run check in web does that.
package main
