package git

import (
	"net"
	"testing"
)

// TestAConnectionIsNotTooOldWhenItIsTaken: it may become so while it waits, and its key is not looked at again.
func TestAConnectionIsNotTooOldWhenItIsTaken(t *testing.T) {
	t.Parallel()
	s := newSSHConnections()
	near, far := net.Pipe()
	c := newSSHConnection(near)
	s.give("key", c)
	c.old.Store(true)
	if s.take("key") != nil {
		t.Fatal("it is used again")
	}
	if _, err := far.Write([]byte("x")); err == nil {
		t.Error("it is still open")
	}
}

// TestSomeConnectionsAreKeptForThoseWhoAskTogether, and no more of one key.
func TestSomeConnectionsAreKeptForThoseWhoAskTogether(t *testing.T) {
	t.Parallel()
	s := newSSHConnections()
	var far []net.Conn
	for range maxAlike + 1 {
		near, end := net.Pipe()
		far = append(far, end)
		s.give("key", newSSHConnection(near))
	}
	if _, err := far[maxAlike].Write([]byte("x")); err == nil {
		t.Error("one too many is kept")
	}
	if s.take("another") != nil {
		t.Error("it is another's")
	}
	for i := range maxAlike {
		c := s.take("key")
		if c == nil {
			t.Fatalf("%d are kept", i)
		}
		c.close()
	}
	if s.take("key") != nil {
		t.Error("one is given twice")
	}
}
