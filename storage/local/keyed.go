package local

import "sync"

// keyed is a mutex for each key. A key that nobody holds takes no memory.
type keyed[K comparable] struct {
	mu    sync.Mutex
	locks map[K]*keyLock
}

type keyLock struct {
	held  chan struct{} // takes one
	users int
}

// lock waits for the key and returns what releases it.
func (k *keyed[K]) lock(key K) (unlock func()) {
	unlock, _ = k.await(nil, key)
	return unlock
}

// await is lock for who gives up when done is closed, and then has no key.
func (k *keyed[K]) await(done <-chan struct{}, key K) (unlock func(), ok bool) {
	k.mu.Lock()
	if k.locks == nil {
		k.locks = make(map[K]*keyLock)
	}
	held, ok := k.locks[key]
	if !ok {
		held = &keyLock{held: make(chan struct{}, 1)}
		k.locks[key] = held
	}
	held.users++
	k.mu.Unlock()

	leave := func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if held.users--; held.users == 0 {
			delete(k.locks, key)
		}
	}
	select {
	case held.held <- struct{}{}:
		return func() { <-held.held; leave() }, true
	case <-done:
		leave()
		return nil, false
	}
}
