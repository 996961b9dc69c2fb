package installation_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/controllers/modules/installation"
	"sluice.dev/sluice/tests/testenv"
)

func TestVariablesAreReadAsTheTenant(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	p.release("1.0.0", "", configMap("rendered", "${color}-${size}"))
	p.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "defaults"}, Data: map[string]string{"color": "red", "size": "small"}})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "own"}, StringData: map[string]string{"color": "green"}}
	p.create(secret)
	p.install(func(spec *modulesv1.ModuleInstallationSpec) {
		spec.Module.Version = "1.0.0"
		spec.Config = &modulesv1.InstallationConfig{
			SubstituteFrom: []modulesv1.SubstituteReference{
				{Kind: modulesv1.SubstituteFromConfigMap, Name: "defaults"},
				{Kind: modulesv1.SubstituteFromSecret, Name: "own"},
				{Kind: modulesv1.SubstituteFromConfigMap, Name: "absent", Optional: true},
			},
			Substitute: map[string]string{"size": "large"},
		}
	})
	p.until("installed", installed("1.0.0"))
	p.wantVersion("rendered", "green-large")

	secret.StringData = map[string]string{"color": "blue"}
	check(t, p.client.Update(t.Context(), secret))
	p.edit(func(obj *modulesv1.ModuleInstallation) {
		obj.Annotations = map[string]string{meta.ReconcileRequestAnnotation: "now"}
	})
	testenv.Eventually(t, "a request reads them again", func(context.Context) (bool, string) {
		got := p.version("rendered")
		return got == "blue-large", got
	})
	own := p.wire.matching(func(r request) bool {
		return r.as == "" && (strings.Contains(r.path, "configmaps") || strings.Contains(r.path, "secrets"))
	})
	if len(own) > 0 {
		t.Errorf("variables were read as the controller itself: %+v", own)
	}
}

// TestUnusedVariablesAreTold: in the message of Applied for as long as it is so, and by one event.
func TestUnusedVariablesAreTold(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	p.release("1.0.0", "", configMap("rendered", "${color}"))
	p.install(func(spec *modulesv1.ModuleInstallationSpec) {
		spec.Module.Version = "1.0.0"
		spec.Config = &modulesv1.InstallationConfig{Substitute: map[string]string{"color": "red", "colour": "blue"}}
	})
	told := func(obj *modulesv1.ModuleInstallation) bool {
		return strings.HasSuffix(conditions.GetMessage(obj, modulesv1.AppliedCondition), "nothing uses the variables of spec.config.substitute: colour")
	}
	obj := p.until("installed", installed("1.0.0"))
	if !told(obj) {
		t.Errorf("the message of Applied does not tell: %s", summary(obj))
	}
	p.edit(func(obj *modulesv1.ModuleInstallation) {
		obj.Annotations = map[string]string{meta.ReconcileRequestAnnotation: "now"}
	})
	obj = p.until("looked at again", func(obj *modulesv1.ModuleInstallation) bool { return obj.Status.LastHandledReconcileAt == "now" })
	if !told(obj) {
		t.Errorf("it is told once only: %s", summary(obj))
	}
	if count := len(p.events.of(modulesv1.UnusedVariablesReason)); count != 1 {
		t.Errorf("%d events", count)
	}
	p.edit(func(obj *modulesv1.ModuleInstallation) { delete(obj.Spec.Config.Substitute, "colour") })
	p.until("corrected", func(obj *modulesv1.ModuleInstallation) bool { return installed("1.0.0")(obj) && !told(obj) })
}

func TestMissingVariablesKeepWhatIsInstalled(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	p.release("1.0.0", "")
	p.install(func(spec *modulesv1.ModuleInstallationSpec) {
		spec.Module.Version = "1.0.0"
		spec.Config = &modulesv1.InstallationConfig{SubstituteFrom: []modulesv1.SubstituteReference{
			{Kind: modulesv1.SubstituteFromConfigMap, Name: "values"},
		}}
	})
	p.until("nothing can be rendered", is(modulesv1.AppliedCondition, metav1.ConditionFalse, modulesv1.BuildFailedReason))
	values := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "values"}, Data: map[string]string{"a": "b"}}
	p.create(values)
	p.until("tried again after the retry interval", installed("1.0.0"))

	check(t, p.client.Delete(t.Context(), values))
	p.edit(func(obj *modulesv1.ModuleInstallation) {
		obj.Annotations = map[string]string{meta.ReconcileRequestAnnotation: "now"}
	})
	p.until("the loss is told", is(meta.ReadyCondition, metav1.ConditionFalse, modulesv1.BuildFailedReason))
	p.tamper()
	testenv.Eventually(t, "drift is healed all the same", func(context.Context) (bool, string) {
		got := p.version("settings")
		return got == "1.0.0", got
	})
}

func TestDependencyIsWaitedForByWatch(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	p.release("1.0.0", "")
	p.install(func(spec *modulesv1.ModuleInstallationSpec) {
		spec.Module.Version = "1.0.0"
		// Nothing but the watch can tell in time.
		spec.RetryInterval = &metav1.Duration{Duration: time.Hour}
		spec.DependsOn = []modulesv1.Dependency{{APIVersion: "v1", Kind: "ConfigMap", Name: "base", ReadyExpr: "dep.data.ready == 'yes'"}}
	})
	obj := p.until("missing", is(meta.ReadyCondition, metav1.ConditionFalse, modulesv1.DependencyNotReadyReason))
	if conditions.IsStalled(obj) {
		t.Errorf("it waits, and is not stalled: %s", summary(obj))
	}
	base := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "base"}, Data: map[string]string{"ready": "no"}}
	p.create(base)
	p.until("not ready", func(obj *modulesv1.ModuleInstallation) bool {
		return strings.Contains(conditions.GetMessage(obj, meta.ReadyCondition), "not ready")
	})
	base.Data["ready"] = "yes"
	check(t, p.client.Update(t.Context(), base))
	p.until("ready", installed("1.0.0"))
}

func TestArtifactIsWaitedForByWatch(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	p.depot.withheld = true
	template := p.release("1.0.0", "")
	p.install(func(spec *modulesv1.ModuleInstallationSpec) { spec.Module.Version = "1.0.0" })
	obj := p.until("waits", is(modulesv1.UpToDateCondition, metav1.ConditionFalse, modulesv1.ArtifactNotReadyReason))
	if !conditions.IsReconciling(obj) || obj.Status.Desired == nil || obj.Status.Desired.Template != template.Name {
		t.Errorf("desired %+v, %s", obj.Status.Desired, summary(obj))
	}
	p.depot.release(t, p.client, p.namespace)
	p.until("installed", installed("1.0.0"))
}

func TestTemplateRaisedInPlace(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	template := p.release("1.0.0", "regular")
	p.install(func(spec *modulesv1.ModuleInstallationSpec) { spec.Module.Channel = "regular" })
	p.until("installed", installed("1.0.0"))
	before := template.DeepCopy()
	template.Spec.Version = "1.1.0"
	template.Spec.Artifact.OCI.Digest = p.depot.publish(t, map[string]string{"settings.yaml": configMap("settings", "1.1.0")})
	check(t, p.client.Patch(t.Context(), template, client.MergeFrom(before)))
	p.until("raised", installed("1.1.0"))
	p.wantVersion("settings", "1.1.0")
}

func TestFirstInstallationOfNothingIsStalled(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	p.install(func(spec *modulesv1.ModuleInstallationSpec) { spec.Module.Channel = "regular" })
	obj := p.until("there is no such module", is(meta.StalledCondition, metav1.ConditionTrue, modulesv1.ModuleNotFoundReason))
	if !is(modulesv1.ResolvedCondition, metav1.ConditionFalse, modulesv1.ModuleNotFoundReason)(obj) || obj.Status.Inventory != nil {
		t.Errorf("%s", summary(obj))
	}
	if got := p.column("Module"); got != "foo" {
		t.Errorf("column MODULE shows %q", got)
	}
	p.release("1.0.0", "regular")
	p.until("a release wakes it", installed("1.0.0"))
}

func TestSystemCatalogueIsSharedAndSticky(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	shared := &modulesv1.ModuleTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.system, Name: "foo-1.0.0"},
		Spec: modulesv1.ModuleTemplateSpec{ModuleName: "foo", Version: "1.0.0", Artifact: modulesv1.TemplateArtifact{OCI: &modulesv1.OCIArtifact{
			Repository: "oci://registry.example/foo", Digest: p.depot.publish(t, map[string]string{"settings.yaml": configMap("settings", "1.0.0")}),
		}}},
	}
	p.create(shared)
	p.install(func(spec *modulesv1.ModuleInstallationSpec) { spec.Module.Latest = true })
	obj := p.until("from the system's catalogue", installed("1.0.0"))
	if obj.Status.Resolution.Catalog != modulesv1.CatalogSystem || obj.Status.Current.Namespace != p.system {
		t.Errorf("resolution %+v, current %+v", obj.Status.Resolution, obj.Status.Current)
	}
	p.release("9.9.9", "")
	p.edit(func(obj *modulesv1.ModuleInstallation) {
		obj.Annotations = map[string]string{meta.ReconcileRequestAnnotation: "now"}
	})
	obj = p.until("it stays there", func(obj *modulesv1.ModuleInstallation) bool { return obj.Status.LastHandledReconcileAt == "now" })
	if obj.Status.Current.Version != "1.0.0" || !installed("1.0.0")(obj) {
		t.Errorf("a local release must not take over: %s", summary(obj))
	}
	inventory := &modulesv1.Inventory{}
	check(t, p.client.Get(t.Context(), client.ObjectKeyFromObject(obj), inventory))
	if choice := inventory.Data.Choice; choice == nil || choice.Catalog != modulesv1.CatalogSystem || choice.Namespace != p.system {
		t.Errorf("choice on record: %+v", choice)
	}
}

func TestInventoryOutlivesForegroundDeletion(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	p.release("1.0.0", "")
	p.install(func(spec *modulesv1.ModuleInstallationSpec) { spec.Module.Version = "1.0.0" })
	obj := p.until("installed", installed("1.0.0"))
	inventory := &modulesv1.Inventory{}
	key := client.ObjectKeyFromObject(obj)
	check(t, p.client.Get(t.Context(), key, inventory))
	if owner := metav1.GetControllerOf(inventory); owner == nil || owner.UID != obj.UID {
		t.Errorf("owner of the inventory: %+v", owner)
	}
	// Garbage collection deletes what an object owns before the object, if that is deleted in the foreground.
	check(t, p.client.Delete(t.Context(), inventory))
	check(t, p.client.Get(t.Context(), key, inventory))
	p.delete()
	p.gone()
	p.wantVersion("settings", "")
}

// TestRecordOfAnEarlierInstallation: an object that went without its finalizer leaves its record to garbage collection.
// The next one of that name goes on once that has begun.
func TestRecordOfAnEarlierInstallation(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	p.release("1.0.0", "")
	choose := func(spec *modulesv1.ModuleInstallationSpec) { spec.Module.Version = "1.0.0" }
	p.install(choose)
	obj := p.until("installed", installed("1.0.0"))
	p.edit(func(obj *modulesv1.ModuleInstallation) { obj.Spec.Suspend = true })
	p.delete()
	p.until("it waits", is(meta.ReadyCondition, metav1.ConditionFalse, modulesv1.DeletionFailedReason))
	p.edit(func(obj *modulesv1.ModuleInstallation) { obj.Finalizers = nil })
	testenv.Eventually(t, "it is gone", func(ctx context.Context) (bool, string) {
		err := p.client.Get(ctx, client.ObjectKeyFromObject(obj), &modulesv1.ModuleInstallation{})
		return apierrors.IsNotFound(err), "it is there"
	})
	p.install(choose)
	p.until("the record is in the way", is(meta.ReadyCondition, metav1.ConditionFalse, modulesv1.OwnershipConflictReason))
	inventory := &modulesv1.Inventory{}
	check(t, p.client.Get(t.Context(), client.ObjectKeyFromObject(obj), inventory))
	check(t, p.client.Delete(t.Context(), inventory))
	p.edit(func(obj *modulesv1.ModuleInstallation) {
		obj.Annotations = map[string]string{meta.ReconcileRequestAnnotation: "now"}
	})
	p.until("installed again", installed("1.0.0"))
}

func TestDefaultAccountIsInTheTenantsNamespace(t *testing.T) {
	t.Parallel()
	p := newPlane(t, func(options *installation.Options) { options.DefaultServiceAccount = deployer })
	p.release("1.0.0", "")
	p.install(func(spec *modulesv1.ModuleInstallationSpec) {
		spec.Module.Version = "1.0.0"
		spec.ServiceAccountName = ""
	})
	p.until("installed", installed("1.0.0"))
	account := "system:serviceaccount:" + p.namespace + ":" + deployer
	others := p.wire.matching(func(r request) bool { return r.as != account && strings.Contains(r.path, "configmaps") })
	if len(others) > 0 {
		t.Errorf("requests for members as somebody else: %+v", others)
	}
}

func TestOwnIdentityIsUsedWhereItIsAllowed(t *testing.T) {
	t.Parallel()
	p := newPlane(t, func(options *installation.Options) { options.AllowOwnIdentity = true })
	p.release("1.0.0", "")
	p.install(func(spec *modulesv1.ModuleInstallationSpec) {
		spec.Module.Version = "1.0.0"
		spec.ServiceAccountName = ""
	})
	p.until("installed", installed("1.0.0"))
	others := p.wire.matching(func(r request) bool { return r.as != "" })
	if len(others) > 0 {
		t.Errorf("requests as somebody else: %+v", others)
	}
}

func TestSuspendedInstallationIsNotRemoved(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	p.release("1.0.0", "")
	p.install(func(spec *modulesv1.ModuleInstallationSpec) { spec.Module.Version = "1.0.0" })
	p.until("installed", installed("1.0.0"))
	p.edit(func(obj *modulesv1.ModuleInstallation) { obj.Spec.Suspend = true })
	p.delete()
	p.until("it waits", is(meta.ReadyCondition, metav1.ConditionFalse, modulesv1.DeletionFailedReason))
	p.wantVersion("settings", "1.0.0")
	p.edit(func(obj *modulesv1.ModuleInstallation) { obj.Spec.Suspend = false })
	p.gone()
	p.wantVersion("settings", "")
}

func TestInstallationWithoutRecordIsLetGo(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	p.install(func(spec *modulesv1.ModuleInstallationSpec) { spec.ServiceAccountName = "" })
	p.until("nothing to install", is(modulesv1.ResolvedCondition, metav1.ConditionFalse, modulesv1.ModuleNotFoundReason))
	p.delete()
	p.gone()
}
