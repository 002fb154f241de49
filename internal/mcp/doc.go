// Package mcp serves Ashlar's answers to agents over the Model Context Protocol:
// a message of JSON in every line of standard input and output.
//
// A [Tool] answers with a document, which is structured content under a JSON
// schema that comes from the document's Go type, and with the text that the
// terminal shows. [Root] says which files may be read. Lists of a document are
// cut to what an agent can take in, and the document says which.
package mcp
