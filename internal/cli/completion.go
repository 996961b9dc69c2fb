package cli

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// completionTime is how long a shell waits for names.
const completionTime = 2 * time.Second

// complete offers what may follow the arguments: these words, and after a kind the names of its objects. Where these cannot
// be had in time it offers none.
func (b *base) complete(words []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		offered := slices.Clone(words)
		word, _, paired := strings.Cut(begun, "/")
		switch {
		case paired:
			offered = b.names(cmd.Context(), word, word+"/")
		case len(args) > 0:
			offered = b.names(cmd.Context(), args[0], "")
		}
		offered = slices.DeleteFunc(offered, func(one string) bool { return !strings.HasPrefix(one, begun) || slices.Contains(args, one) })
		return offered, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeInstallations offers the names of installations.
func (b *base) completeInstallations(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 || strings.Contains(begun, "/") {
		return b.complete(nil)(cmd, args, begun)
	}
	return b.complete(b.names(cmd.Context(), kinds()[0].resource, ""))(cmd, args, begun)
}

// kindNames are what people type for kinds, after some other words.
func kindNames(names ...string) []string {
	for _, k := range kinds() {
		names = append(names, k.resource)
	}
	return names
}

// names are those of the kind's objects, each behind the prefix.
func (b *base) names(ctx context.Context, word, prefix string) []string {
	k, known := kindOf(word)
	if !known {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, completionTime)
	defer stop()
	found := make(chan []string, 1)
	go func() { found <- b.listed(ctx, k, prefix) }()
	select {
	case names := <-found:
		return names
	case <-ctx.Done(): // A plugin that gets the login knows nothing of a context, and may ask somebody for a password.
		return nil
	}
}

// listed asks for the names.
func (b *base) listed(ctx context.Context, k kind, prefix string) []string {
	there, err := newSession(b.config, b.scheme, io.Discard)
	if err != nil {
		return nil
	}
	found, err := there.listAll(ctx, k, client.InNamespace(there.namespace))
	if err != nil {
		return nil
	}
	var names []string
	for i := range found {
		names = append(names, prefix+found[i].GetName())
	}
	return names
}

// completeStates offers states.
func completeStates(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	earlier, last := "", begun
	if at := strings.LastIndexByte(begun, ','); at >= 0 {
		earlier, last = begun[:at+1], begun[at+1:]
	}
	var offered []string
	for _, state := range stateNames() {
		if strings.HasPrefix(state, last) {
			offered = append(offered, earlier+state)
		}
	}
	return offered, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
