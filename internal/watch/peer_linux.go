package watch

import (
	"net"
	"os"
	"syscall"
)

// isSameUser reports whether the process at the other end is this user's, or
// root's.
func isSameUser(c net.Conn) bool {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return false
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return false
	}
	same := false
	err = raw.Control(func(fd uintptr) {
		peer, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
		same = err == nil && (int(peer.Uid) == os.Getuid() || peer.Uid == 0)
	})
	return err == nil && same
}
