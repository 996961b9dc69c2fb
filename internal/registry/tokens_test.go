package registry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"oras.land/oras-go/v2/registry/remote/auth"
)

func asAttempt(ctx context.Context) context.Context {
	return context.WithValue(ctx, attemptKey{}, &attempt{})
}

func TestWaitersOutliveTheOneTheyWaitFor(t *testing.T) {
	t.Parallel()
	broken := errors.New("token server is broken")
	for reason, test := range map[string]struct {
		first   error
		want    error
		fetches int
	}{
		"the first gives up":    {context.Canceled, nil, 2},
		"the first runs late":   {fmt.Errorf("dial: %w", context.DeadlineExceeded), nil, 2},
		"the server is broken":  {broken, broken, 1},
		"the first is answered": {nil, nil, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			kept := newTokens()
			release, fetches := make(chan struct{}), 0
			go func() {
				_, _ = kept.Set(asAttempt(t.Context()), "", auth.SchemeBearer, "scope", func(context.Context) (string, error) {
					fetches++
					<-release
					return "token", test.first
				})
			}()
			synctest.Wait()
			for range 5 {
				go func() {
					token, err := kept.Set(asAttempt(t.Context()), "", auth.SchemeBearer, "scope", func(context.Context) (string, error) {
						fetches++
						return "token", nil
					})
					if !errors.Is(err, test.want) || err == nil && token != "token" {
						t.Errorf("%s: %q, %v", reason, token, err)
					}
				}()
			}
			synctest.Wait()
			close(release)
			synctest.Wait()
			if fetches != test.fetches {
				t.Errorf("%s: %d token requests", reason, fetches)
			}
		})
	}
}

func TestAWaiterCanGiveUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept := newTokens()
		release := make(chan struct{})
		go func() {
			_, _ = kept.Set(asAttempt(t.Context()), "", auth.SchemeBearer, "scope", func(context.Context) (string, error) {
				<-release
				return "token", nil
			})
		}()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := kept.Set(asAttempt(ctx), "", auth.SchemeBearer, "scope", nil); !errors.Is(err, context.Canceled) {
			t.Errorf("Set: %v", err)
		}
		close(release)
	})
}

func TestTokensAreBounded(t *testing.T) {
	t.Parallel()
	kept := newTokens()
	set := func(scheme auth.Scheme, scope, token string) error {
		_, err := kept.Set(asAttempt(t.Context()), "", scheme, scope, func(context.Context) (string, error) { return token, nil })
		return err
	}
	for i := range maxTokens + 10 {
		if err := set(auth.SchemeBearer, fmt.Sprint(i), "token"); err != nil {
			t.Fatal(err)
		}
	}
	if got := kept.kept.Len(); got != maxTokens {
		t.Errorf("%d tokens are kept", got)
	}
	if err := set(auth.SchemeBearer, "long", strings.Repeat("a", maxToken+1)); !errors.Is(err, ErrProtocol) {
		t.Errorf("a long token: %v", err)
	}
	if err := set(auth.SchemeBasic, "", "basic"); err != nil || kept.kept.Len() != 1 {
		t.Errorf("%v, %d tokens are kept of another scheme", err, kept.kept.Len())
	}
	if _, err := kept.GetToken(t.Context(), "", auth.SchemeBearer, ""); err == nil {
		t.Error("what was kept for Basic was given as a token")
	}
}

func TestAPanicOfATokenRequestIsItsError(t *testing.T) {
	t.Parallel()
	_, err := newTokens().Set(asAttempt(t.Context()), "", auth.SchemeBearer, "scope", func(context.Context) (string, error) { panic("half an answer") })
	if !errors.Is(err, ErrProtocol) {
		t.Errorf("got %v", err)
	}
}
