package v1alpha1

const (
	// InstallationFinalizer keeps a ModuleInstallation until what it installed is removed or let go of.
	InstallationFinalizer = "modules.sluice.dev/installation"

	// TemplateAnnotation names the ModuleTemplate that a source was made for.
	TemplateAnnotation = "modules.sluice.dev/template"
)

// Where a ModuleTemplate of before spec.moduleName and spec.version says the same. The fields win where they are set.
const (
	// ModuleNameLabel holds the module's name.
	ModuleNameLabel = "operator.kyma-project.io/module-name"

	// ModuleVersionAnnotation holds the release's version.
	ModuleVersionAnnotation = "operator.kyma-project.io/module-version"
)

// NoChannel in spec.channel of a ModuleTemplate says, like an empty channel, that the release claims none.
const NoChannel = "none"
