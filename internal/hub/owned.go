package hub

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// syncInterval is after how long what was acknowledged is on the disk even if
// the machine loses power. A process that is killed loses nothing.
const syncInterval = time.Second

// unlimited is more than a disk has: [Hub.room] looks at what it really has.
const unlimited = 1 << 60

// readyTime is how long a server may take to read its folder.
const readyTime = 30 * time.Second

// owned is the server of a folder that this process owns.
type owned struct {
	dir    string
	lock   *os.File
	server *server.Server
	socket net.Listener
	known  known // as it was last written

	closing    chan struct{}
	remembered sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool // nil when it is closed
	pipes sync.WaitGroup
}

func lockFile(dir string) string   { return filepath.Join(dir, "lock") }
func socketFile(dir string) string { return filepath.Join(dir, "hub.sock") }

// Exists reports whether there is a store in a folder.
func Exists(dir string) bool {
	_, err := os.Stat(lockFile(dir))
	return err == nil
}

// own starts the server of a folder, or returns nil if another process has it. log
// gets what the user should know of the folder.
func own(dir string, l *Listen, log func(string)) (*owned, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		var path *os.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		return nil, fmt.Errorf("%s cannot be the folder of the store (%w): choose one that you can write", dir, err)
	}
	lock, err := tryLock(lockFile(dir))
	if lock == nil || err != nil {
		return nil, err
	}
	o := &owned{dir: dir, lock: lock, conns: map[net.Conn]bool{}, closing: make(chan struct{})}
	options := &server.Options{
		ServerName: "ashlar", DontListen: true, NoLog: true, NoSigs: true, DisableJetStreamBanner: true,
		JetStream: true, StoreDir: dir, SyncInterval: syncInterval,
		JetStreamMaxStore: unlimited, // else three quarters of what is free now, with what is stored counted against it
	}
	err = l.apply(options)
	if err == nil {
		err = writeToken(dir, options.Authorization)
	}
	if err == nil {
		err = mend(dir, time.Now(), log)
	}
	if err != nil {
		lock.Close()
		return nil, err
	}
	o.server, err = server.NewServer(options)
	if err != nil {
		lock.Close()
		return nil, fmt.Errorf("the store in %s cannot be served: %w", dir, err)
	}
	o.server.Start()
	if !o.server.ReadyForConnections(readyTime) || !o.server.JetStreamEnabled() {
		o.close()
		if l != nil {
			return nil, fmt.Errorf("nothing can be served at %s: check that no other process listens there, and that the disk has room", l.Address)
		}
		return nil, fmt.Errorf("the store in %s cannot be read: check that the disk has room and the files are yours", dir)
	}
	o.remembered.Go(o.remember)
	if err := o.listen(socketFile(dir)); err != nil {
		o.close()
		return nil, err
	}
	return o, nil
}

// listen lets other processes in. The lock is ours, so a socket that is there
// belongs to a process that is gone.
func (o *owned) listen(path string) (err error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if o.socket, err = net.Listen("unix", path); err != nil {
		return fmt.Errorf("no socket can be made at %s (%w): choose a folder with a shorter name", path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return err
	}
	o.pipes.Go(func() {
		for {
			outside, err := o.socket.Accept()
			if err != nil {
				return // closed
			}
			inside, err := o.server.InProcessConn()
			if err != nil || !o.keep(outside, inside) {
				outside.Close()
				continue
			}
			o.pipe(outside, inside)
		}
	})
	return nil
}

// keep notes connections to be closed at the end.
func (o *owned) keep(conns ...net.Conn) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.conns == nil {
		return false
	}
	for _, c := range conns {
		o.conns[c] = true
	}
	return true
}

// pipe carries bytes both ways until either side ends.
func (o *owned) pipe(a, b net.Conn) {
	end := func() {
		a.Close()
		b.Close()
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.conns, a)
		delete(o.conns, b)
	}
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		o.pipes.Go(func() {
			defer end()
			io.Copy(way[0], way[1]) // a connection that breaks is closed
		})
	}
}

func (o *owned) close() {
	if o.socket != nil {
		o.socket.Close()
	}
	o.mu.Lock()
	conns := o.conns
	o.conns = nil
	o.mu.Unlock()
	for c := range conns {
		c.Close()
	}
	close(o.closing)
	o.remembered.Wait()
	complete := o.known.Streams != nil && o.known.ask(o.server)
	o.server.Shutdown()
	o.server.WaitForShutdown()
	o.pipes.Wait()
	if complete {
		o.seal()
	}
	o.lock.Close()
}
