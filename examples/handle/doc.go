// Handle shares buffers between the requests of a server: a cache of prompts
// keeps weak handles, and the last request that uses a prompt frees it.
package main
