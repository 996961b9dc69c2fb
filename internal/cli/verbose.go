package cli

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"sluice.dev/sluice/internal/printable"
)

const (
	// tellsRequests is the verbosity from which on requests are told, as kubectl has it, and tellsHeaders that for headers too.
	tellsRequests, tellsHeaders = 6, 7
)

// bindConnection adds the flags of kubectl's name that say how to speak to the API server.
func (b *base) bindConnection(command *cobra.Command) {
	flags := command.Flags()
	verbosity := flags.IntP("v", "v", 0, "Tell of each request to the API server: from 6 on what was asked for, from 7 on its headers. Logins and bodies are never told.")
	b.config.WithWrapConfigFn(func(config *rest.Config) *rest.Config {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return interruptible{next, command.Context()} })
		if *verbosity >= tellsRequests {
			config.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return &verbose{next: next, to: b.ErrOut, headers: *verbosity >= tellsHeaders}
			})
		}
		return config
	})
	b.config.AddFlags(flags)
}

// verbose tells of requests. What client-go's own telling shows of bodies may be anything, a Secret's annotations among it.
type verbose struct {
	next    http.RoundTripper
	to      io.Writer
	headers bool

	mu sync.Mutex
}

// RoundTrip implements http.RoundTripper.
func (v *verbose) RoundTrip(request *http.Request) (*http.Response, error) {
	begun := time.Now()
	response, err := v.next.RoundTrip(request)
	came := "no answer"
	if err == nil {
		came = response.Status
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.tell(fmt.Sprintf("%s %s: %s, %d ms", request.Method, request.URL.Redacted(), came, time.Since(begun).Milliseconds()))
	if v.headers {
		// These alone: any other one may be a login.
		for _, name := range []string{"Accept", "Content-Type", "User-Agent", "Impersonate-User", "Impersonate-Group"} {
			for _, value := range request.Header.Values(name) {
				v.tell("  " + name + ": " + value)
			}
		}
	}
	return response, err //nolint:wrapcheck // It is as if nobody had listened.
}

func (v *verbose) tell(line string) {
	fmt.Fprintln(v.to, printable.Line(strings.TrimRight(line, " "), maxProblem))
}
