package packages

// What the controllers may do. Objects of the cluster that are injected into packages are read as the variant's
// ServiceAccount, and the right to approve is for those changes that a variant's policy approves.
//
// +kubebuilder:rbac:groups=packages.sluice.dev,resources=repositories;packagevariants,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=packages.sluice.dev,resources=packagerevisions,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=packages.sluice.dev,resources=repositories/status;packagevariants/status;packagerevisions/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=packages.sluice.dev,resources=repositories/finalizers;packagevariants/finalizers;packagerevisions/finalizers,verbs=update
// +kubebuilder:rbac:groups=packages.sluice.dev,resources=packagerevisions/approval,verbs=update
// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=gitrepositories,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=get;list;watch;impersonate
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch
