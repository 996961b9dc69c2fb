package local

import "sync"

// keyed is a mutex for each key. A key that nobody holds takes no memory.
type keyed[K comparable] struct {
	mu    sync.Mutex
	locks map[K]*keyLock
}

type keyLock struct {
	sync.Mutex
	users int
}

// lock waits for the key and returns what releases it.
func (k *keyed[K]) lock(key K) (unlock func()) {
	k.mu.Lock()
	if k.locks == nil {
		k.locks = make(map[K]*keyLock)
	}
	held, ok := k.locks[key]
	if !ok {
		held = &keyLock{}
		k.locks[key] = held
	}
	held.users++
	k.mu.Unlock()

	held.Lock()
	return func() {
		held.Unlock()
		k.mu.Lock()
		defer k.mu.Unlock()
		if held.users--; held.users == 0 {
			delete(k.locks, key)
		}
	}
}
