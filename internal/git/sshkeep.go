package git

import (
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/crypto/ssh"
)

const (
	// maxConnections is how many connections wait for the next poll, and maxAlike how many of them to the same server by the
	// same identity: objects that are due together ask at the same time.
	maxConnections = 64
	maxAlike       = 4
	// maxIdle is how long one waits, maxAge how old it becomes: a server does not look again at a key that it took once.
	maxIdle = 3 * time.Minute
	maxAge  = 10 * time.Minute
)

// sshConnection is a connection on which one conversation after the other may take place.
type sshConnection struct {
	conn   net.Conn
	client *ssh.Client
	idle   *time.Timer
	age    *time.Timer
	old    atomic.Bool
}

func newSSHConnection(conn net.Conn) *sshConnection {
	c := &sshConnection{conn: conn}
	c.age = time.AfterFunc(maxAge, func() { c.old.Store(true) })
	return c
}

func (c *sshConnection) close() {
	c.age.Stop()
	if c.client != nil {
		_ = c.client.Close() // Nothing is under way any more.
	}
	_ = c.conn.Close()
}

// sshConnections wait for the next conversation with the same server by the same identity, which is their key.
type sshConnections struct {
	mu      sync.Mutex
	waiting *simplelru.LRU[*sshConnection, string]
}

func newSSHConnections() *sshConnections {
	waiting, _ := simplelru.NewLRU[*sshConnection, string](maxConnections, nil) // It fails for a size below one alone.
	return &sshConnections{waiting: waiting}
}

// take hands out the connection that was used last; nil without one that is young enough.
func (s *sshConnections) take(key string) *sshConnection {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range slices.Backward(s.waiting.Keys()) {
		if its, _ := s.waiting.Peek(c); its != key {
			continue
		}
		s.waiting.Remove(c)
		c.idle.Stop()
		if !c.old.Load() {
			return c
		}
		c.close()
	}
	return nil
}

// give takes a connection back, or closes it where enough are waiting already or it is too old.
func (s *sshConnections) give(key string, c *sshConnection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	alike := slices.DeleteFunc(s.waiting.Values(), func(its string) bool { return its != key })
	if len(alike) == maxAlike || c.old.Load() {
		c.close()
		return
	}
	if s.waiting.Len() == maxConnections {
		oldest, _, _ := s.waiting.RemoveOldest()
		oldest.idle.Stop()
		oldest.close()
	}
	c.idle = time.AfterFunc(maxIdle, func() { s.drop(c) })
	s.waiting.Add(c, key)
}

// drop closes a connection that has waited too long.
func (s *sshConnections) drop(c *sshConnection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting.Remove(c) {
		c.close()
	}
}
