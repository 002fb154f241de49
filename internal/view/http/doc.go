// Package http is what the page's server needs of net/http. In the browser, where
// the server does not listen, it stands in for that package, which would bring
// TLS and a megabyte of compressed code into every page that is written.
package http
