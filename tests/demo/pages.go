package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/chromedp/chromedp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// peopleManifest lets ann edit what is in the namespace, and bob look at it.
const peopleManifest = `apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: ann}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ann}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: bob}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: sluice-view}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: bob}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: ann-edits}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: sluice-edit}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ann}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: ann-looks}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: sluice-view}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ann}]
`

// pagesOpened opens the web UI as two people, in a browser without a screen.
func (d *demo) pagesOpened(ctx context.Context) error {
	if err := errors.Join(d.kubectl(ctx, "", "apply", "-f", "config/rbac/people.yaml"), d.kubectl(ctx, peopleManifest, "apply", "-f", "-")); err != nil {
		return err
	}
	tree, err := d.sluice(ctx, 0, "tree", "web")
	if err != nil {
		return err
	}
	return errors.Join(
		d.asPerson(ctx, "ann", func(tab context.Context) error { return d.annReconciles(ctx, tab, tree) }),
		d.asPerson(ctx, "bob", d.bobIsTold),
	)
}

// asPerson runs the UI of somebody, and what they do in a browser that has it open.
func (d *demo) asPerson(ctx context.Context, name string, do func(tab context.Context) error) (err error) {
	kubeconfig, err := d.env.KubeconfigAs(name)
	if err != nil {
		return err
	}
	d.say("$ sluice ui --actions    # as %s", name)
	command := exec.CommandContext(ctx, filepath.Join(d.dir, "sluice"), "ui", "--actions", "--listen", "127.0.0.1:0", "--namespace", namespace)
	command.Env = append(os.Environ(), "HOME="+d.dir, "KUBECONFIG="+kubeconfig, "LC_ALL=C.UTF-8")
	printed, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		return fmt.Errorf("start the UI: %w", err)
	}
	defer func() { err = errors.Join(err, command.Process.Signal(syscall.SIGINT), command.Wait()) }()
	entrance, err := bufio.NewReader(printed).ReadString('\n')
	if err != nil {
		return fmt.Errorf("read the UI's URL: %w", err)
	}
	allocated, stop := chromedp.NewExecAllocator(ctx, chromedp.ExecPath("chromium-headless-shell"), chromedp.NoSandbox, chromedp.Headless)
	defer stop()
	tab, leave := chromedp.NewContext(allocated)
	defer leave()
	if err := chromedp.Do(tab, chromedp.Navigate(strings.TrimSpace(entrance))); err != nil {
		return fmt.Errorf("open the UI: %w", err)
	}
	at, err := chromedp.Run(tab, chromedp.Location())
	if err != nil {
		return fmt.Errorf("open the UI: %w", err)
	}
	if err := chromedp.Do(tab, chromedp.Navigate(at+"o/"+modulesv1.GroupVersion.Group+"/"+modulesv1.ModuleInstallationKind+"/"+namespace+"/web")); err != nil {
		return fmt.Errorf("open the page of an installation: %w", err)
	}
	return do(tab)
}

// annReconciles sees the state and the graph that the commands tell, and reconciles.
func (d *demo) annReconciles(ctx, tab context.Context, tree string) error {
	boxes, err := chromedp.Run(tab, chromedp.Evaluate[[]string](`[...document.querySelectorAll('main svg g.box title')].map((one) => one.textContent)`))
	if err != nil {
		return fmt.Errorf("read the graph: %w", err)
	}
	if len(boxes) < 2 {
		return fmt.Errorf("the graph has %q", boxes)
	}
	for _, box := range boxes {
		// An object has a kind, a name and a state; what is upstream has a name alone.
		words := strings.Fields(box)
		words = words[:min(len(words), 3)]
		for _, word := range words {
			if !strings.Contains(tree, word) {
				return fmt.Errorf("the page has %q, and the command does not", box)
			}
		}
		d.say("ann sees %s", strings.Join(words, " "))
	}
	state, err := chromedp.Run(tab, chromedp.Evaluate[string](`document.querySelector('main .now .state').lastChild.textContent.trim()`))
	if err != nil {
		return fmt.Errorf("read the state: %w", err)
	}
	if err := d.sluices(ctx, typed{0, state, []string{"get", "web"}}); err != nil {
		return err
	}
	if err := pressed(tab, `a[href$="/do/reconcile"]`, "button.do"); err != nil {
		return err
	}
	d.say("ann presses Reconcile…, and Reconcile under the patch that is shown")
	return eventually(ctx, "it is reconciled", func(ctx context.Context) (bool, error) {
		obj := &modulesv1.ModuleInstallation{}
		err := d.env.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "web"}, obj)
		asked := obj.Annotations["reconcile.fluxcd.io/requestedAt"]
		return err == nil && asked != "" && obj.Status.LastHandledReconcileAt == asked, err
	})
}

// pressed presses what leads to a page, and what is on that.
func pressed(tab context.Context, selectors ...string) error {
	for _, selector := range selectors {
		press := fmt.Sprintf(`(() => { const found = document.querySelector(%q); found?.click(); return !!found })()`, selector)
		if err := eventually(tab, selector+" is there", func(context.Context) (bool, error) {
			// While the tab goes from one page to the next, there is an error.
			found, err := chromedp.Run(tab, chromedp.Evaluate[bool](press))
			return err == nil && found, nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// bobIsTold has no button, and is refused when he goes there all the same.
func (d *demo) bobIsTold(tab context.Context) error {
	buttons, err := chromedp.Run(tab, chromedp.Evaluate[int](`document.querySelectorAll('a[href*="/do/"]').length`))
	if err != nil || buttons != 0 {
		return fmt.Errorf("bob has %d buttons: %w", buttons, err)
	}
	at, err := chromedp.Run(tab, chromedp.Location())
	if err != nil {
		return fmt.Errorf("find the page: %w", err)
	}
	if err := chromedp.Do(tab, chromedp.Navigate(at+"/do/reconcile")); err != nil {
		return fmt.Errorf("go to the action: %w", err)
	}
	told, err := chromedp.Run(tab, chromedp.Evaluate[string](`document.querySelector('main pre').textContent`))
	if err != nil {
		return fmt.Errorf("read what is told: %w", err)
	}
	if !strings.Contains(told, "You may not reconcile") {
		return fmt.Errorf("bob is told %q", told)
	}
	d.say("bob has no button; at its address he is told: %s", told)
	return nil
}
