package cli

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// completionTime is how long a shell waits for names.
const completionTime = 2 * time.Second

// complete offers what may follow the arguments: kinds, and then the names of their objects. Where these cannot be had in
// time it offers none.
func (g *getter) complete(scheme *runtime.Scheme) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		offered := kindNames()
		word, _, paired := strings.Cut(begun, "/")
		switch {
		case paired:
			offered = g.names(cmd.Context(), scheme, word, word+"/")
		case len(args) > 0:
			offered = g.names(cmd.Context(), scheme, args[0], "")
		}
		offered = slices.DeleteFunc(offered, func(one string) bool { return !strings.HasPrefix(one, begun) || slices.Contains(args, one) })
		return offered, cobra.ShellCompDirectiveNoFileComp
	}
}

// kindNames are what people type for kinds.
func kindNames() []string {
	names := []string{"all", "sources"}
	for _, k := range kinds() {
		names = append(names, k.resource)
	}
	return names
}

// names are those of the kind's objects, each behind the prefix.
func (g *getter) names(ctx context.Context, scheme *runtime.Scheme, word, prefix string) []string {
	k, known := kindOf(word)
	if !known {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, completionTime)
	defer stop()
	there, err := newSession(g.config, scheme, io.Discard)
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
