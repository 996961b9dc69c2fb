package cli

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// oldest is the oldest Kubernetes that serves what the manifests have: ValidatingAdmissionPolicy of admissionregistration.k8s.io/v1.
const oldest = "1.30"

// checkup is whether a cluster has what Sluice needs.
type checkup struct {
	Checks []finding `json:"checks"`
}

// finding is what one check found.
type finding struct {
	Check   string `json:"check"`
	Good    *bool  `json:"good,omitempty"`
	Message string `json:"message,omitempty"`
	Help    string `json:"help,omitempty"`
}

// checker is one call of check.
type checker struct {
	*base

	pre    bool
	bundle bundle
	given  string
	told   checkup
}

func checkCommand(b *base) *cobra.Command {
	c := &checker{base: b}
	command := &cobra.Command{
		Use:   "check",
		Short: "Check whether the cluster has all that this version needs, and the controllers run",
		Example: `  sluice check --pre
  sluice check`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	shown := bindAnswers(command)
	flags := command.Flags()
	flags.BoolVar(&c.pre, "pre", false, "Check what installing takes, and not what is installed.")
	flags.StringVar(&c.bundle.controllers, "controllers", "all", "What is to be there: all, or source for the source plane alone.")
	flags.StringVar(&c.given, "system-namespace", "", "Namespace of the controllers. Empty: where their Deployment is found.")
	return b.on(command, func(ctx context.Context, _ []string) error {
		objects, err := c.bundle.objects()
		if err != nil {
			return err
		}
		if err := c.server(); err != nil {
			return err
		}
		if c.pre {
			c.rights(ctx, objects)
		} else {
			c.installed(ctx, objects)
		}
		c.beside(ctx)
		err = shown.show(b.Out, "Check", c.told, c.told.print)
		return errors.Join(err, c.told.verdict())
	})
}

// verdict is what the command ends with. A fault stays one, whatever else could not be found out.
func (c checkup) verdict() error {
	switch {
	case slices.ContainsFunc(c.Checks, func(one finding) bool { return one.Good != nil && !*one.Good }):
		return &CommandError{Code: ExitNo}
	case !c.allGood():
		return &CommandError{Code: ExitUnanswered}
	}
	return nil
}

// note notes what a check found, with help where it is needed.
func (c *checkup) note(check string, good bool, message, help string) {
	if good {
		help = ""
	}
	c.Checks = append(c.Checks, finding{Check: check, Good: &good, Message: message, Help: help})
}

// allGood says that nothing is at fault, or unknown.
func (c checkup) allGood() bool {
	return !slices.ContainsFunc(c.Checks, func(one finding) bool { return one.Good == nil || !*one.Good })
}

// unknown notes what could not be found out.
func (c *checker) unknown(check string, err error, role string) {
	told := explain("read", err, role)
	help := ""
	if len(told.Help) > 0 {
		help = told.Help[0]
	}
	c.told.Checks = append(c.told.Checks, finding{Check: check, Message: told.Why, Help: help})
}

// server checks the version of the API server. An error says that it cannot be reached.
func (c *checker) server() error {
	discovery, err := c.config.ToDiscoveryClient()
	if err != nil {
		return explain("reach the API server", err, "")
	}
	found, err := discovery.ServerVersion()
	if err != nil {
		return explain("ask for the API server's version", err, "system:public-info-viewer")
	}
	parsed, err := version.ParseGeneric(found.GitVersion)
	good := err == nil && parsed.AtLeast(version.MustParseGeneric(oldest))
	c.told.note("Kubernetes", good, found.GitVersion, "Sluice needs "+oldest+" or newer")
	return nil
}

// rights checks whether you may make what installing makes.
func (c *checker) rights(ctx context.Context, objects []*unstructured.Unstructured) {
	known := map[string]bool{}
	var lacking []string
	for _, obj := range objects {
		gvk := obj.GroupVersionKind()
		mapping, err := c.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			c.unknown("Rights", err, "cluster-admin")
			return
		}
		at := mapping.Resource.String() + " in " + obj.GetNamespace()
		if known[at] {
			continue
		}
		known[at] = true
		for _, verb := range []string{"create", "patch"} {
			may, err := c.may(ctx, authorizationv1.ResourceAttributes{
				Namespace: obj.GetNamespace(), Verb: verb, Group: mapping.Resource.Group, Version: mapping.Resource.Version, Resource: mapping.Resource.Resource,
			})
			if err != nil {
				c.unknown("Rights", err, "system:basic-user")
				return
			}
			if !may {
				lacking = append(lacking, verb+" "+mapping.Resource.Resource)
			}
		}
	}
	message := "you may make all that is installed"
	if len(lacking) > 0 {
		message = "you may not " + list(lacking)
	}
	c.told.note("Rights", len(lacking) == 0, message, "ask for the ClusterRole cluster-admin")
}

// installed checks the kinds and the roles, and what runs.
func (c *checker) installed(ctx context.Context, objects []*unstructured.Unstructured) {
	for _, kind := range []string{"CustomResourceDefinition", "ClusterRole"} {
		var missing, other []string
		var lacking error
		count := 0
		for _, obj := range objects {
			if obj.GetKind() != kind {
				continue
			}
			count++
			live := &unstructured.Unstructured{}
			live.SetGroupVersionKind(obj.GroupVersionKind())
			switch err := c.Get(ctx, client.ObjectKeyFromObject(obj), live); {
			case apierrors.IsNotFound(err):
				missing = append(missing, obj.GetName())
			case err != nil:
				lacking = err
			case !reflect.DeepEqual(stateOf(obj), stateOf(live)):
				other = append(other, obj.GetName())
			}
		}
		switch {
		case lacking != nil:
			c.unknown(kind+"s", lacking, "cluster-admin")
		case len(missing) > 0:
			c.told.note(kind+"s", false, "missing: "+list(missing), again)
		case len(other) > 0:
			c.told.note(kind+"s", false, "of another version than this program: "+list(other), again+", or use the program of the controllers' version")
		default:
			c.told.note(kind+"s", true, fmt.Sprintf("%d, as this version has them", count), "")
		}
	}
	c.running(ctx)
}

// again is what helps against what is missing.
const again = "sluice install applies it anew"

// running checks the controllers, and the Service in front of them.
func (c *checker) running(ctx context.Context) {
	found, err := c.managers(ctx, c.given)
	if err != nil {
		c.unknown("Controllers", err, "view")
		return
	}
	if len(found) == 0 {
		c.told.note("Controllers", false, "no Deployment has the label "+managerLabel+"="+programName, again)
	}
	for i := range found {
		d := &found[i]
		c.told.note("Controllers", d.Status.ReadyReplicas > 0, fmt.Sprintf("Deployment %s/%s: %d of %d ready, %s", d.Namespace, d.Name, d.Status.ReadyReplicas, replicas(d), imagesOf(d)),
			"kubectl describe deployment "+d.Name+" -n "+d.Namespace+" tells why")
		var service corev1.Service
		switch err := c.Get(ctx, client.ObjectKey{Namespace: d.Namespace, Name: artifactService}, &service); {
		case apierrors.IsNotFound(err):
			c.told.note("Service", false, d.Namespace+"/"+artifactService+" is missing, so that nobody gets artifacts", again)
		case err != nil:
			c.unknown("Service", err, "view")
		default:
			c.told.note("Service", true, d.Namespace+"/"+artifactService, "")
		}
	}
}

// artifactService is the Service that artifacts are got from.
const artifactService = "source-controller"

func imagesOf(d *appsv1.Deployment) string {
	var images []string
	for _, container := range d.Spec.Template.Spec.Containers {
		images = append(images, container.Image)
	}
	return list(images)
}

// stateOf is what has to be as this version has it: the fields of a kind's versions, and what a role allows. What a role takes from others
// is the API server's to fill in.
func stateOf(obj *unstructured.Unstructured) map[string]any {
	all := map[string]any{}
	if obj.Object["aggregationRule"] == nil {
		all["rules"] = obj.Object["rules"]
	}
	versions, _, _ := unstructured.NestedSlice(obj.Object, "spec", "versions")
	for _, one := range versions {
		fields, _ := one.(map[string]any)
		name, _, _ := unstructured.NestedString(fields, "name")
		schema, _, _ := unstructured.NestedMap(fields, "schema", "openAPIV3Schema")
		all[name] = schema
	}
	return all
}

// beside checks that nobody else works on the same kinds.
func (c *checker) beside(ctx context.Context) {
	var others appsv1.DeploymentList
	if err := c.List(ctx, &others, client.MatchingLabels{"app": artifactService}); err != nil {
		c.unknown("Flux beside", err, "view")
		return
	}
	running := slices.DeleteFunc(others.Items, func(d appsv1.Deployment) bool { return replicas(&d) == 0 || d.Labels[managerLabel] == programName })
	if len(running) == 0 {
		c.told.note("Flux beside", true, "no other source-controller runs", "")
		return
	}
	c.told.note("Flux beside", false, "Deployment "+client.ObjectKeyFromObject(&running[0]).String()+" works on the same kinds",
		"scale it to 0, and see the page on moving from Flux")
}

// print writes what each check found.
func (c checkup) print(t table) error {
	marks := map[bool]string{true: "✔", false: "✗"}
	if t.plain {
		marks = map[bool]string{true: "ok", false: "FAULT"}
	}
	var rows [][]string
	for _, one := range c.Checks {
		mark := "?"
		if one.Good != nil {
			mark = marks[*one.Good]
		}
		rows = append(rows, []string{mark, one.Check, one.Message})
		if one.Help != "" {
			rows = append(rows, []string{"", "", one.Help})
		}
	}
	t.wide = true // What is wrong stands there whole.
	return t.rows(rows)
}
