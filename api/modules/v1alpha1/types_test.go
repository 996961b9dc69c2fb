package v1alpha1_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/tests/docs"
)

var camelCase = regexp.MustCompile(`^([A-Z][a-z]+)+$`)

func TestSchemeKnowsTheKinds(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := modulesv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{
		modulesv1.ModuleTemplateKind, modulesv1.ModuleKind, modulesv1.ModuleInstallationKind, modulesv1.InventoryKind,
	} {
		for _, name := range []string{kind, kind + "List"} {
			if !scheme.Recognizes(modulesv1.GroupVersion.WithKind(name)) {
				t.Errorf("%s is not known to the scheme", name)
			}
		}
	}
}

// TestObjectsAreWrittenAsRead: every field has its name on the wire, comes back under it, and survives a copy. The
// files hold every field there is; the test says which one a file has not got.
func TestObjectsAreWrittenAsRead(t *testing.T) {
	t.Parallel()
	for file, object := range map[string]runtime.Object{
		"moduletemplate.yaml":     &modulesv1.ModuleTemplate{},
		"module.yaml":             &modulesv1.Module{},
		"moduleinstallation.yaml": &modulesv1.ModuleInstallation{},
		"inventory.yaml":          &modulesv1.Inventory{},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join("testdata", file))
			if err != nil {
				t.Fatal(err)
			}
			if err := yaml.UnmarshalStrict(text, object); err != nil {
				t.Fatal(err)
			}
			reportUnset(t, file, reflect.ValueOf(object).Elem())
			var want map[string]any
			if err := yaml.Unmarshal(text, &want); err != nil {
				t.Fatal(err)
			}
			written, err := json.Marshal(object.DeepCopyObject())
			if err != nil {
				t.Fatal(err)
			}
			var got map[string]any
			if err := json.Unmarshal(written, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("object written back (-want +got):\n%s", diff)
			}
		})
	}
}

// reportUnset names the fields of our types that the object leaves unset.
func reportUnset(t *testing.T, path string, value reflect.Value) {
	t.Helper()
	switch value.Kind() {
	case reflect.Pointer:
		reportUnset(t, path, value.Elem())
	case reflect.Slice:
		for i := range value.Len() {
			reportUnset(t, path+"["+strconv.Itoa(i)+"]", value.Index(i))
		}
	case reflect.Struct:
		if !strings.HasSuffix(value.Type().PkgPath(), "api/modules/v1alpha1") {
			return
		}
		for i := range value.NumField() {
			field := path + "." + value.Type().Field(i).Name
			// An artifact is one of three: the file has one list entry's worth of each elsewhere. What could not be decoded
			// is never written.
			if value.Field(i).IsZero() && !slices.Contains([]string{"Git", "SourceRef", "Undecodable", "UnreadableStatus"}, value.Type().Field(i).Name) {
				t.Errorf("%s is not set", field)
				continue
			}
			reportUnset(t, field, value.Field(i))
		}
	default:
	}
}

func TestDefaultsOfUnsetFields(t *testing.T) {
	t.Parallel()
	var (
		install  modulesv1.ModuleInstallation
		template modulesv1.ModuleTemplateSpec
		request  = &install.Spec.Module
		no       = false
		percent  = int32(10)
	)
	check := func(reason string, want, got any) {
		t.Helper()
		if want != got {
			t.Errorf("%s: want %v, got %v", reason, want, got)
		}
	}
	check("interval", 10*time.Minute, install.GetRequeueAfter())
	check("retry interval", time.Minute, install.Spec.GetRetryInterval())
	check("timeout", 5*time.Minute, install.Spec.GetTimeout())
	check("management", modulesv1.ManagementManaged, install.Spec.GetManagement())
	check("adopt", modulesv1.AdoptIfUnowned, install.Spec.GetAdopt())
	check("ignored", 0, len(install.Spec.GetIgnored()))
	check("deletion", modulesv1.DeletionMode(""), install.Spec.GetDeletionMode())
	check("upgrade mode", modulesv1.UpgradeAutomatic, install.Spec.GetUpgradeMode())
	check("approval", "", install.Spec.GetApprove())
	check("pruning", true, install.Spec.PruneEnabled())
	check("bound of pruning", int32(100), install.Spec.GetPruneMaxPercent())
	check("default configuration", true, install.Spec.CreatesDefaultConfig())
	check("catalogue", modulesv1.CatalogAuto, request.GetCatalog())
	check("template's deletion", modulesv1.DeletionBlock, template.GetDeletionMode())
	check("support", modulesv1.SupportSupported, template.GetSupportState())

	second := metav1.Duration{Duration: time.Second}
	install.Spec = modulesv1.ModuleInstallationSpec{
		Interval: &second, RetryInterval: &second, Timeout: &second, Management: modulesv1.ManagementPaused,
		Deletion: &modulesv1.InstallationDeletion{Mode: modulesv1.DeletionOrphan},
		Upgrade:  &modulesv1.UpgradePolicy{Mode: modulesv1.UpgradeNever, MaxStep: modulesv1.StepPatch, AllowDowngradeTo: "1.0.0", Approve: "d"},
		Prune:    &modulesv1.PrunePolicy{Enabled: &no, MaxPercent: &percent},
		Config:   &modulesv1.InstallationConfig{DefaultConfig: modulesv1.DefaultConfigIgnore},
		Module: modulesv1.ModuleRequest{Catalog: modulesv1.CatalogLocal, Prereleases: &modulesv1.Prereleases{
			Policy: modulesv1.PrereleasesListed, Identifiers: []string{"rc"},
		}},
	}
	template.Deletion = &modulesv1.TemplateDeletion{Mode: modulesv1.DeletionOrphan}
	template.Support = &modulesv1.TemplateSupport{State: modulesv1.SupportWithdrawn}
	check("set interval", time.Second, install.GetRequeueAfter())
	check("set retry interval", time.Second, install.Spec.GetRetryInterval())
	check("set timeout", time.Second, install.Spec.GetTimeout())
	check("set management", modulesv1.ManagementPaused, install.Spec.GetManagement())
	check("set deletion", modulesv1.DeletionOrphan, install.Spec.GetDeletionMode())
	check("set upgrade mode", modulesv1.UpgradeNever, install.Spec.GetUpgradeMode())
	check("set approval", "d", install.Spec.GetApprove())
	check("pruning is off", false, install.Spec.PruneEnabled())
	check("set bound of pruning", int32(10), install.Spec.GetPruneMaxPercent())
	check("no default configuration", false, install.Spec.CreatesDefaultConfig())
	check("set catalogue", modulesv1.CatalogLocal, request.GetCatalog())
	check("template's set deletion", modulesv1.DeletionOrphan, template.GetDeletionMode())
	check("set support", modulesv1.SupportWithdrawn, template.GetSupportState())
}

func TestTemplateNames(t *testing.T) {
	t.Parallel()
	label := map[string]string{modulesv1.ModuleNameLabel: "old"}
	cases := map[string]struct {
		reason, name, channel   string
		labels                  map[string]string
		wantModule, wantChannel string
	}{
		"Field":     {"the field says it", "redis", "fast", nil, "redis", "fast"},
		"Label":     {"an old template says it with a label", "", "", label, "old", ""},
		"FieldWins": {"the field wins", "redis", "none", label, "redis", ""},
		"Neither":   {"nothing says it", "", "", nil, "", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			template := modulesv1.ModuleTemplate{
				ObjectMeta: metav1.ObjectMeta{Labels: tc.labels},
				Spec:       modulesv1.ModuleTemplateSpec{ModuleName: tc.name, Channel: tc.channel},
			}
			if got := template.GetModuleName(); got != tc.wantModule {
				t.Errorf("%s: module: want %q, got %q", tc.reason, tc.wantModule, got)
			}
			if got := template.Spec.GetChannel(); got != tc.wantChannel {
				t.Errorf("%s: channel: want %q, got %q", tc.reason, tc.wantChannel, got)
			}
		})
	}
}

func TestConditionsAreTheObjects(t *testing.T) {
	t.Parallel()
	for _, object := range []interface {
		GetConditions() []metav1.Condition
		SetConditions(conditions []metav1.Condition)
	}{&modulesv1.ModuleTemplate{}, &modulesv1.Module{}, &modulesv1.ModuleInstallation{}} {
		want := []metav1.Condition{{Type: modulesv1.ResolvedCondition}}
		object.SetConditions(want)
		if diff := cmp.Diff(want, object.GetConditions()); diff != "" {
			t.Errorf("%T: conditions (-want +got):\n%s", object, diff)
		}
	}
}

// TestReasonsAreOneWordEach: what conditions carry is CamelCase, and no two constants of one suffix say the same.
func TestReasonsAreOneWordEach(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{"Reason", "Condition"} {
		found, err := docs.Constants("condition_types.go", suffix)
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]string{}
		for name, value := range found {
			if !camelCase.MatchString(value) {
				t.Errorf("%s = %q is not CamelCase", name, value)
			}
			if other, taken := names[value]; taken {
				t.Errorf("%s and %s are both %q", name, other, value)
			}
			names[value] = name
		}
		if len(found) < 10 {
			t.Errorf("only %d constants end in %s", len(found), suffix)
		}
	}
}
