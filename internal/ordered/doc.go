// Package ordered has a map whose keys are in order, such as addresses: files have hundreds of thousands of segments
// and blocks that come and go, and whoever looks for the one that an address lies in needs the nearest key.
package ordered
