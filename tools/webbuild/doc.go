// Webbuild makes the page of ashlar view from its sources in web: one script,
// one style sheet and the document that loads them, in view/dist, from where
// package view embeds them.
//
//	go -C tools run ./webbuild          writes view/dist
//	go -C tools run ./webbuild -check   fails if view/dist is not what web makes
//
// It needs neither Node nor a network. The bundler is a Go library, and the few
// modules that the page uses are kept in web/vendor as they were published.
// Types are not looked at here: npm run check in web does that.
package main
