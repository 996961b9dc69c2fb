package cli

import (
	"cmp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	extensionsv1 "sluice.dev/sluice/api/extensions/v1beta1"
	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/credential"
)

// kind is all that the commands know of one of our kinds.
type kind struct {
	schema.GroupVersionKind

	// resource is the plural name, and aliases are the others that people use.
	resource string
	aliases  []string
	// isSource says that others take artifacts from its objects.
	isSource bool
	columns  []column
	// product is the field that moves when something came of the work on an object. Its path has dots.
	product string
	// answers says that a controller works on the objects, and answers who asks for it.
	answers bool
	// suspends says what is written to suspend an object; nil for kinds that are not suspended.
	suspends *suspension
	// origins are the objects that one takes from.
	origins func(*unstructured.Unstructured) []origin
}

// column is what a table shows of an object beside its name and state.
type column struct {
	title string
	// wide says that it is shown where that is asked for.
	wide  bool
	value func(*unstructured.Unstructured) string
}

// field is a column with the first of the fields that is there. Its path has dots.
func field(title string, paths ...string) column {
	return column{title: title, value: func(obj *unstructured.Unstructured) string {
		for _, path := range paths {
			if found, ok, _ := unstructured.NestedFieldNoCopy(obj.Object, strings.Split(path, ".")...); ok {
				if shown := scalar(found); shown != "" {
					return shown
				}
			}
		}
		return ""
	}}
}

// address is a column with where something is, without a login that stands in it.
func address(title, path string) column {
	made := field(title, path)
	whole := made.value
	made.value = func(obj *unstructured.Unstructured) string { return credential.CleanURL(whole(obj)) }
	return made
}

// wide is a column for those who ask for more.
func wide(c column) column { c.wide = true; return c }

// kinds are the kinds in the order in which they are listed together.
func kinds() []kind {
	of := func(group schema.GroupVersion, name, resource, alias, product string, columns ...column) kind {
		return kind{
			GroupVersionKind: group.WithKind(name), resource: resource, aliases: []string{alias}, columns: columns,
			product: product, answers: true, suspends: &suspension{},
		}
	}
	source := func(name, resource, alias string, columns ...column) kind {
		made := of(sourcev1.GroupVersion, name, resource, alias, revisionField, append(columns, field("REVISION", revisionField))...)
		made.isSource = true
		return made
	}
	generator := of(extensionsv1.GroupVersion, extensionsv1.ArtifactGeneratorKind, "artifactgenerators", "ag", "status.observedSourcesDigest").
		suspended(&suspension{extensionsv1.ReconcileAnnotation, extensionsv1.ReconcileDisabled})
	generator.isSource = true
	return []kind{
		of(modulesv1.GroupVersion, modulesv1.ModuleInstallationKind, "moduleinstallations", "mi", "status.current.version",
			field("MODULE", "status.resolution.module", "spec.module.name", "spec.module.templateRef.name"),
			column{title: "FOLLOWS", value: follows}, field("VERSION", "status.current.version"), field("PENDING", "status.pending.version"),
			wide(field("TEMPLATE", "status.current.template")), wide(field("OBJECTS", "status.inventory.members"))).
			from(release),
		of(modulesv1.GroupVersion, modulesv1.ModuleTemplateKind, "moduletemplates", "mt", "status.digest",
			field("MODULE", "status.moduleName", "spec.moduleName"), field("VERSION", "status.version", "spec.version"), field("CHANNEL", "spec.channel"),
			field("SUPPORT", "spec.support.state"), field("USED", "status.usedBy"), wide(field("DIGEST", "status.digest"))).
			suspended(nil).from(refs("", "status.sourceRef", "spec.artifact.sourceRef")),
		of(modulesv1.GroupVersion, modulesv1.ModuleKind, "modules", "mod", "status.latest.version",
			field("DEFAULT", "spec.defaultChannel"), field("LATEST", "status.latest.version"), field("INSTALLATIONS", "status.installations")).
			suspended(nil),
		source(sourcev1.GitRepositoryKind, "gitrepositories", "gitrepo", wide(address("URL", "spec.url"))).
			from(refs(sourcev1.GitRepositoryKind, "spec.include.repository")),
		source(sourcev1.OCIRepositoryKind, "ocirepositories", "ocirepo", wide(address("URL", "spec.url"))),
		source(sourcev1.BucketKind, "buckets", "bucket", wide(address("ENDPOINT", "spec.endpoint"))),
		source(sourcev1.HelmRepositoryKind, "helmrepositories", "helmrepo", wide(address("URL", "spec.url"))),
		source(sourcev1.HelmChartKind, "helmcharts", "hc", field("CHART", "spec.chart"), wide(field("VERSION", "spec.version"))).
			from(refs("", "spec.sourceRef")),
		source(sourcev1.ExternalArtifactKind, "externalartifacts", "ea", wide(field("SOURCE", "spec.sourceRef.name"))).
			suspended(nil).unanswered().from(refs("", "spec.sourceRef")),
		generator.from(refs("", "spec.sources")),
		of(packagesv1.GroupVersion, packagesv1.RepositoryKind, "repositories", "pkgrepo", "status.head", wide(address("URL", "status.url"))),
		of(packagesv1.GroupVersion, packagesv1.PackageVariantKind, "packagevariants", "pkgvar", "status.upstream.revision",
			field("UPSTREAM", "spec.upstream.package"), field("REVISION", "status.upstream.revision"), field("PACKAGE", "status.downstream.package"),
			field("CHANGE", "status.change.lifecycle"), field("PUBLISHED", "status.published.revision")).
			from(refs(packagesv1.RepositoryKind, "spec.upstream.repo")),
		of(packagesv1.GroupVersion, packagesv1.PackageVariantSetKind, "packagevariantsets", "pkgvarset", "status.variants",
			field("UPSTREAM", "spec.upstream.package"), field("TARGETS", "status.targets"), field("VARIANTS", "status.variants"), field("READY", "status.readyVariants")).
			from(refs(packagesv1.RepositoryKind, "spec.upstream.repo")),
		of(packagesv1.GroupVersion, packagesv1.PackageRevisionKind, "packagerevisions", "pkgrev", "status.revision",
			field("REPOSITORY", "spec.repository"), field("PACKAGE", "spec.package"), field("WORKSPACE", "spec.workspace"),
			field("REVISION", "status.revision"), field("LIFECYCLE", "status.lifecycle")).
			suspended(nil).from(refs(packagesv1.RepositoryKind, "spec.repository")),
	}
}

// revisionField is where sources say what their artifact was made of.
const revisionField = "status.artifact.revision"

// suspended is the kind that is suspended so.
func (k kind) suspended(how *suspension) kind { k.suspends = how; return k }

// from is the kind whose objects take from those.
func (k kind) from(origins func(*unstructured.Unstructured) []origin) kind {
	k.origins = origins
	return k
}

// unanswered is the kind that nobody works on.
func (k kind) unanswered() kind { k.answers = false; return k }

// kindOf finds the kind by any of its names.
func kindOf(name string) (kind, bool) {
	name = strings.ToLower(name)
	all := kinds()
	at := slices.IndexFunc(all, func(k kind) bool { return slices.Contains(k.names(), name) })
	if at < 0 {
		return kind{}, false
	}
	return all[at], true
}

// list is for objects of the kind.
func (k kind) list() *unstructured.UnstructuredList {
	made := &unstructured.UnstructuredList{}
	made.SetGroupVersionKind(k.GroupVersion().WithKind(k.Kind + "List"))
	return made
}

// names are all that the kind goes by.
func (k kind) names() []string {
	return append([]string{k.resource, strings.ToLower(k.Kind), k.resource + "." + k.Group}, k.aliases...)
}

// mapper knows our kinds, and those of Kubernetes that are asked for beside them, so that nothing has to be discovered. The
// other one is asked for all else.
func mapper(other meta.RESTMapper) meta.RESTMapper {
	known := meta.NewDefaultRESTMapper(nil)
	known.Add(authenticationv1.SchemeGroupVersion.WithKind("SelfSubjectReview"), meta.RESTScopeRoot)
	for _, name := range []string{"SelfSubjectAccessReview", "SelfSubjectRulesReview"} {
		known.Add(authorizationv1.SchemeGroupVersion.WithKind(name), meta.RESTScopeRoot)
	}
	for _, k := range kinds() {
		known.AddSpecific(k.GroupVersionKind, k.GroupVersion().WithResource(k.resource), k.GroupVersion().WithResource(strings.ToLower(k.Kind)), meta.RESTScopeNamespace)
	}
	for _, name := range []string{"Event", "Pod"} {
		known.Add(corev1.SchemeGroupVersion.WithKind(name), meta.RESTScopeNamespace)
	}
	known.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	known.Add(appsv1.SchemeGroupVersion.WithKind("Deployment"), meta.RESTScopeNamespace)
	known.Add(coordinationv1.SchemeGroupVersion.WithKind("Lease"), meta.RESTScopeNamespace)
	return honest{meta.FirstHitRESTMapper{MultiRESTMapper: meta.MultiRESTMapper{known, other}}}
}

// honest tells that kinds could not be asked for, which is not that there is none: that one of two mappers knows none counts for nothing
// then.
type honest struct{ meta.RESTMapper }

// KindFor implements meta.RESTMapper.
func (h honest) KindFor(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	found, err := h.RESTMapper.KindFor(resource)
	return found, gravest(err)
}

// RESTMapping implements meta.RESTMapper.
func (h honest) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	found, err := h.RESTMapper.RESTMapping(gk, versions...)
	return found, gravest(err)
}

func gravest(err error) error {
	if grave := utilerrors.FilterOut(err, meta.IsNoMatchError); grave != nil {
		return grave
	}
	return err
}

// follows is by what an installation's release is chosen: as it was found last, else as the spec asks.
func follows(obj *unstructured.Unstructured) string {
	get := func(path ...string) string {
		found, _, _ := unstructured.NestedString(obj.Object, path...)
		return found
	}
	asked := ""
	for _, by := range []string{"channel", "version", "range"} {
		if value := get("spec", "module", by); value != "" {
			asked = by + "/" + value
		}
	}
	return cmp.Or(get("status", "resolution", "selectedBy"), asked)
}
