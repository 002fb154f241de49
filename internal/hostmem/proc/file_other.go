//go:build !unix

package proc

import "io/fs"

func owner(fs.FileInfo) (uid int, ok bool) { return 0, false }

func inode(fs.FileInfo) uint64 { return 0 }
