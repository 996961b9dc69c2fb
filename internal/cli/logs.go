package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/internal/printable"
)

// logger shows what the controllers' log has of one object.
type logger struct {
	*base

	system string
	follow bool
	since  time.Duration
	level  string
	whole  bool
}

// maxLogLine is how long a line of the log may be.
const maxLogLine = 1 << 20

// levels are those of the log's lines, the gravest last.
func levels() []string { return []string{"debug", "info", "error"} }

func logsCommand(b *base) *cobra.Command {
	l := &logger{base: b}
	command := &cobra.Command{
		Use:   "logs [KIND] NAME | KIND/NAME",
		Short: "Show what the controllers' log has of an object",
		Example: `  sluice logs redis -f
  sluice logs gitrepository/app --since 10m --level error`,
		ValidArgsFunction: b.complete(kindNames()),
	}
	flags := command.Flags()
	flags.BoolVarP(&l.follow, "follow", "f", false, "Go on with what is logged from now on.")
	flags.DurationVar(&l.since, "since", 0, "Show what happened within this time. 0 shows all that is kept.")
	flags.StringVar(&l.level, "level", "debug", "Show lines of this level and graver ones: "+list(levels())+".")
	flags.BoolVar(&l.whole, "json", false, "Show the lines as they were logged.")
	flags.StringVar(&l.system, "system-namespace", "", "Namespace of the controllers. Empty: where their Deployment is found.")
	return b.on(command, l.run)
}

func (l *logger) run(ctx context.Context, args []string) error {
	k, name, err := one(args)
	if err != nil {
		return err
	}
	if !slices.Contains(levels(), l.level) {
		return usage(fmt.Sprintf("--level %s is none", l.level), "the levels are "+list(levels()))
	}
	system, err := l.session.system(ctx, l.system)
	if err != nil {
		return err
	}
	var pods corev1.PodList
	if err := l.List(ctx, &pods, client.InNamespace(system), client.MatchingLabels{managerLabel: programName}); err != nil {
		return explain("list the controllers' pods in namespace "+system, err, "view")
	}
	if len(pods.Items) == 0 {
		return &CommandError{Code: ExitUnanswered, What: "look for the controllers' pods", Why: "there are none in namespace " + system}
	}
	shown, err := l.pods(ctx, pods.Items, ref{k.Kind, l.namespace, name})
	if ctx.Err() != nil {
		return &CommandError{Code: ExitInterrupted}
	}
	if err == nil && shown == 0 {
		fmt.Fprintln(l.ErrOut, "The log has nothing of it.")
	}
	return err
}

// pods shows the lines of all pods' logs: one after the other, or all together where they go on without end.
func (l *logger) pods(ctx context.Context, pods []corev1.Pod, of ref) (shown int, err error) {
	var group errgroup.Group
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if !l.follow {
		group.SetLimit(1)
	}
	var all atomic.Int64
	for i := range pods {
		group.Go(func() error {
			some, err := l.pod(ctx, stop, &pods[i], of)
			all.Add(int64(some))
			return err
		})
	}
	err = group.Wait() //nolint:wrapcheck // It is a CommandError.
	// The others end for that, and one of them may have been first.
	if unwritten, ok := errors.AsType[*CommandError](context.Cause(ctx)); ok {
		err = unwritten
	}
	return int(all.Load()), err
}

// pod shows the lines of one pod's log, and says how many there were. It stops all where nobody takes them any more.
func (l *logger) pod(ctx context.Context, stop func(error), pod *corev1.Pod, of ref) (shown int, err error) {
	options := &corev1.PodLogOptions{Follow: l.follow}
	if l.since > 0 {
		seconds := int64(math.Ceil(l.since.Seconds()))
		options.SinceSeconds = &seconds
	}
	what := fmt.Sprintf("read the log of pod %s/%s", pod.Namespace, pod.Name)
	stream, err := l.core.Pods(pod.Namespace).GetLogs(pod.Name, options).Stream(ctx)
	if err != nil {
		return 0, explain(what, err, "view")
	}
	defer func() { _ = stream.Close() }()
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, maxLogLine)
	for lines.Scan() {
		text, found := l.line(lines.Bytes(), of)
		if !found {
			continue
		}
		if _, err := io.WriteString(l.Out, text+"\n"); err != nil {
			err = unprinted(err)
			stop(err)
			return shown, err
		}
		shown++
	}
	if err := lines.Err(); err != nil && !errors.Is(err, context.Canceled) {
		return shown, explain(what, err, "view")
	}
	return shown, nil
}

// line is what is shown of a line of the log; not found is one of another object, of a lower level, or that is no JSON.
func (l *logger) line(raw []byte, of ref) (text string, found bool) {
	var fields map[string]any
	if json.Unmarshal(raw, &fields) != nil {
		return "", false
	}
	get := func(name string) string { value, _ := fields[name].(string); return value }
	if get("controllerKind") != of.Kind || get("namespace") != of.Namespace || get("name") != of.Name ||
		slices.Index(levels(), get("level")) < slices.Index(levels(), l.level) {
		return "", false
	}
	if l.whole {
		return printable.Line(string(raw), maxLogLine), true
	}
	words := []string{get("ts"), get("level"), get("msg")}
	var others []string
	for name, value := range fields {
		if _, isText := value.(map[string]any); !isText && !slices.Contains(told(), name) {
			others = append(others, fmt.Sprintf("%s=%q", name, fmt.Sprint(value)))
		}
	}
	slices.Sort(others)
	return printable.Line(strings.Join(append(words, others...), " "), maxLogLine), true
}

// told are the fields of a line that are shown before the others, or that say the same in each line.
func told() []string {
	return []string{"ts", "level", "msg", "logger", "controller", "controllerGroup", "controllerKind", "namespace", "name", "reconcileID", "stacktrace"}
}
