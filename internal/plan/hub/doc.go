// Package hub finds models of the Hugging Face hub in the local cache. It never
// uses the network.
package hub
