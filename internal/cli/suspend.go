package cli

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/internal/view"
)

// suspension is how the objects of a kind are suspended: by an annotation with this value, or else by spec.suspend.
type suspension struct{ annotation, value string }

// patch suspends an object, or takes that back.
func (s suspension) patch(suspend bool) map[string]any {
	if s.annotation == "" {
		return map[string]any{"spec": map[string]any{"suspend": or(suspend, true)}}
	}
	return annotated(map[string]any{}, map[string]any{s.annotation: or(suspend, s.value)})
}

// suspending is the patch that suspends an object, and notes who does so, why and when.
func (s suspension) suspending(by, reason string) map[string]any {
	return annotated(s.patch(true), map[string]any{
		view.SuspendedBy: or(by != "", by), view.SuspendedReason: or(reason != "", reason),
		view.SuspendedAt: time.Now().UTC().Format(time.RFC3339),
	})
}

// resuming is the patch that takes all of that back.
func (s suspension) resuming() map[string]any {
	return annotated(s.patch(false), map[string]any{view.SuspendedBy: nil, view.SuspendedReason: nil, view.SuspendedAt: nil})
}

// or is the value, or nothing, which takes a field away.
func or(is bool, value any) any {
	if is {
		return value
	}
	return nil
}

func suspendCommand(b *base) *cobra.Command {
	chosen := suspendable()
	var reason string
	command := &cobra.Command{
		Use:   "suspend [KIND] NAME... | KIND/NAME...",
		Short: "Have no more work done for objects",
		Example: `  sluice suspend redis --reason 'the database is moved by hand'
  sluice suspend gitrepositories --all`,
		ValidArgsFunction: b.complete(kindNames("sources")),
	}
	chosen.bind(command)
	command.Flags().StringVar(&reason, "reason", "", "Why, for those who find the objects suspended.")
	return b.on(command, func(ctx context.Context, args []string) error {
		targets, err := chosen.find(ctx, b, args)
		if err != nil {
			return err
		}
		by := sync.OnceValue(func() string { return b.whoAsks(ctx) })
		return b.each(ctx, targets, func(t *target) error {
			if view.IsSuspended(t.obj) {
				t.at = "suspended already" + view.SuspendedNote(t.obj)
				return nil
			}
			t.at = "suspended"
			return b.patch(ctx, t, t.suspends.suspending(by(), reason))
		})
	})
}

// suspendable are objects of kinds that are suspended.
func suspendable() selection {
	return selection{can: func(k kind) bool { return k.suspends != nil }, cannot: "cannot be suspended"}
}

// each does something for all targets, and tells of those for which it was done.
func (b *base) each(ctx context.Context, targets []*target, do func(*target) error) error {
	var problems []error
	for _, t := range targets {
		if err := do(t); err != nil {
			problems = append(problems, err)
			if ctx.Err() != nil {
				break
			}
			continue
		}
		t.verdict = yes
		t.print(b.Out)
	}
	return errors.Join(problems...)
}

// whoAsks is the name that the API server knows the user by; empty where it does not tell.
func (s *session) whoAsks(ctx context.Context) string {
	who, err := s.identity(ctx)
	if err != nil {
		return ""
	}
	return who.Username
}
