package upstream

import (
	"context"
	"net"
	"sync"
)

// taken are the addresses that servers of this process have had. None is given to a second one: clients may still ask the
// first, with its credentials, and the second would be told what was never meant for it.
var taken sync.Map

// open listens at the address, or at one on 127.0.0.1 that no server of this process has had when it is empty.
func open(ctx context.Context, address string) (net.Listener, error) {
	if address != "" {
		return new(net.ListenConfig).Listen(ctx, "tcp", address)
	}
	for {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		if _, again := taken.LoadOrStore(listener.Addr().String(), nil); !again {
			return listener, nil
		}
		listener.Close()
	}
}
