// Package lint has tests that hold the repository to its own rules:
//
//   - a package imports only from lower layers of ARCHITECTURE.md
//   - the allocator's sizes are written in alloc alone
//   - a comment that cites the specification names a section that exists
//   - examples import only public packages and compile outside the repository
//   - every package has its comment in doc.go
//   - code is not copied
//   - the exported API is that of api.txt
//   - no test asserts how long something takes
//
// Each rule is a function over parsed files, with a test on small sources and a
// test that applies it to the repository. A table lists the exceptions of a rule
// with their reasons; an exception that excuses nothing fails too.
package lint
