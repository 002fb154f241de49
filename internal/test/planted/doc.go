// Package planted makes fleets of snapshots about which the truth is known: which
// commits grew and by which stack, which ranks are odd, and which failures have the
// same cause.
//
// Every file comes from a recording of PyTorch. A run is one recording, which the
// engine runs again with some requests made larger, so that segments, addresses
// and peaks are what the allocator would have done. A commit moves the lines of the
// user's own files as editing does, and may make the requests of one stack larger.
// Ranks scatter a little; a rank that is odd asks for more or less at one stack. A
// failure is a recorded one with its lines moved.
//
// There are changes that are no growth, too: a commit that makes a stack smaller,
// or larger by less than a hundredth of the peak.
package planted
