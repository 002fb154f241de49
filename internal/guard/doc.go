// Package guard reads files that come from elsewhere: up to a limit, since devices
// and pipes never end, and only regular ones where a folder names them, since to
// open a pipe may take for ever.
package guard
