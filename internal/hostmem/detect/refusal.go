package detect

import (
	"fmt"
	"os"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/hostmem/proc"
)

// refusedError says why the kernel does not let us look into a process, and
// what would. It is a [proc.ErrPermission].
type refusedError struct{ why string }

func (e *refusedError) Error() string { return e.why }

func (e *refusedError) Is(target error) bool { return target == proc.ErrPermission }

func refused(pid int) error {
	me, err := proc.ReadCredentials(os.Getpid())
	if err != nil {
		me = &proc.Credentials{RealUID: os.Getuid(), UID: os.Geteuid(), SavedUID: os.Geteuid()}
	}
	it, _ := proc.ReadCredentials(pid) // nil if even that is hidden
	return &refusedError{fmt.Sprintf("process %d %s", pid, refusal(me, it))}
}

// refusal follows the kernel's rule: the same user in all three numbers, a
// process that is dumpable, and no capabilities that we lack; or CAP_SYS_PTRACE,
// which is root's outside containers. Modules and namespaces may still refuse.
func refusal(me, it *proc.Credentials) string {
	const onlyRoot = ": only root may look into it"
	if it == nil {
		return "may not be looked into: only its user or root may do that"
	}
	whose := "belongs to " + proc.UserName(it.UID)
	if it.UID == me.UID {
		whose = "is yours"
	}
	others := slices.DeleteFunc([]int{it.RealUID, it.SavedUID}, func(uid int) bool { return uid == me.UID })
	switch {
	case me.MayTrace():
		return whose + ", and you may look into those of others, but not into this one: it is in another user namespace, or a security module (SELinux, AppArmor) keeps it closed"
	case me.UID == 0:
		return whose + "; you are root, but without CAP_SYS_PTRACE, as in most containers (docker run --cap-add=SYS_PTRACE)"
	case it.UID != me.UID:
		return whose + ": only its user or root may look into it"
	case len(others) > 0:
		return whose + ", but has the rights of " + proc.UserName(others[0]) + " too" + onlyRoot
	case it.Capabilities&^me.Capabilities != 0:
		return whose + ", but has capabilities that you have not" + onlyRoot
	case it.Closed:
		return whose + ", but is not dumpable: it has had other rights, or its file may not be read, or it has asked for that (prctl). Only root may look into it"
	}
	return whose + ", but the kernel keeps it closed: it is in another user namespace, or ptrace is restricted, by a container or a security module. Root may do more"
}
