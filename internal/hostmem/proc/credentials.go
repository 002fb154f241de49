package proc

import (
	"bytes"
	"os"
	"os/user"
	"strconv"
)

// Credentials are the rights of a process, as everybody may know them.
type Credentials struct {
	RealUID, UID, SavedUID int
	Capabilities           uint64 // those in effect
	// Closed is set if the kernel shows its files as root's: the process is not
	// dumpable. For a process of root this cannot be seen.
	Closed bool
}

// capPtrace is the number of CAP_SYS_PTRACE.
const capPtrace = 19

// MayTrace reports whether the process may inspect those of other users.
func (c *Credentials) MayTrace() bool { return c.Capabilities>>capPtrace&1 == 1 }

// ReadCredentials reads the rights of a process out of /proc/PID/status.
func ReadCredentials(pid int) (*Credentials, error) {
	data, err := os.ReadFile(path(pid, "status"))
	if err != nil {
		return nil, classify(pid, err)
	}
	var c Credentials
	for line := range bytes.Lines(data) {
		name, rest, _ := bytes.Cut(line, []byte(":"))
		words := bytes.Fields(rest)
		switch {
		case string(name) == "Uid" && len(words) >= 3:
			c.RealUID, c.UID, c.SavedUID = int(number(words[0])), int(number(words[1])), int(number(words[2]))
		case string(name) == "CapEff" && len(words) == 1:
			c.Capabilities, _ = strconv.ParseUint(string(words[0]), 16, 64) // none, if it is no number
		}
	}
	// The directory keeps its owner, what is in it does not.
	info, err := os.Stat(path(pid, "status"))
	if err != nil {
		return nil, classify(pid, err)
	}
	if uid, ok := owner(info); ok {
		c.Closed = c.UID != 0 && uid != c.UID
	}
	return &c, nil
}

// UserName is the name of a user, or the number if there is none.
func UserName(uid int) string {
	id := strconv.Itoa(uid)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return id
}
