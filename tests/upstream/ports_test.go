package upstream

import "testing"

func TestNoServerInheritsAnAddress(t *testing.T) {
	t.Parallel()
	had := map[string]bool{}
	// Linux chooses among about 7,000 ports, so that 500 choices without a memory are as good as sure to meet.
	for range 500 {
		listener, err := open(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		address := listener.Addr().String()
		if listener.Close(); had[address] {
			t.Fatalf("%s was given twice", address)
		}
		had[address] = true
	}
}
