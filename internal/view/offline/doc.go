// Package offline writes the page of ashlar view as one HTML file that needs no
// server: a Web Worker in it runs the server itself, compiled to WebAssembly, over
// recordings that are in the file too or are dropped onto it.
//
// make build compiles that engine (cmd/ashlar-wasm) into the folder engine, from
// where it is embedded. It is not committed, so an ashlar that was built in
// another way does not have it: see [ErrNoEngine].
//
// The file allows itself no connection of any kind: its content security policy
// names its own script and style by their hashes, and nothing else.
package offline
