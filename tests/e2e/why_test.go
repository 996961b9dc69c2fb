package e2e

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// explained is what the test looks at of why.
type explained struct {
	Wants struct {
		Version string
		Changed bool
		Hold    struct{ Reason, Message string }
	}
	Looks struct{ Namespace string }
	Rules []struct {
		Rule string
		Left int32
	}
	About struct {
		Edits []struct {
			Module  *modulesv1.ModuleRequest
			Upgrade *modulesv1.UpgradePolicy
		}
	}
	Notes []string
}

// why asks why an installation has its release and not the version, as an administrator.
func (s moduleScene) why(name, version string) explained {
	s.t.Helper()
	args := []string{"why", name, "--kubeconfig", env.Kubeconfig, "-n", s.namespace, "-o", "json", "--version", version}
	text, err := exec.CommandContext(s.t.Context(), program(s.t), args...).Output()
	var told explained
	if err != nil || json.Unmarshal(text, &told) != nil {
		s.t.Fatalf("%v: %s", err, text)
	}
	return told
}

// agrees checks that the explanation is what status says.
func (s moduleScene) agrees(told explained, obj *modulesv1.ModuleInstallation) {
	s.t.Helper()
	status := &obj.Status
	reason, message := "", ""
	if status.Pending != nil {
		reason, message = status.Pending.Reason, status.Pending.Message
	}
	if told.Wants.Version != status.Desired.Version || told.Wants.Hold.Reason != reason || told.Wants.Hold.Message != message ||
		told.Looks.Namespace != status.Resolution.Namespace || len(told.Rules) != len(status.Resolution.Trace) || len(told.Notes) > 0 {
		s.t.Errorf("%+v is not what status says: %s", told, asJSON(status))
		return
	}
	for i, step := range status.Resolution.Trace {
		if told.Rules[i].Rule != step.Rule || told.Rules[i].Left != step.Kept {
			s.t.Errorf("step %d is %+v, and in status %+v", i, told.Rules[i], step)
		}
	}
}

// TestWhySaysWhatTheProgramDecides: whether a release runs, waits for its approval, or another is asked about; and the edits
// that it offers, made in turn, lead to the version.
func TestWhySaysWhatTheProgramDecides(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	s.release("1.0.0", map[string]string{"settings.yaml": settings("settings", "1.0.0")})
	s.template("2.0.0", "fast", s.publish("2.0.0", map[string]string{"settings.yaml": settings("settings", "2.0.0")}))
	s.install("app", func(spec *modulesv1.ModuleInstallationSpec) {
		spec.Upgrade = &modulesv1.UpgradePolicy{Mode: modulesv1.UpgradeManual}
	})
	edit := func(told explained) {
		t.Helper()
		if len(told.About.Edits) == 0 {
			t.Fatalf("no edit is offered: %+v", told)
		}
		s.change("app", func(spec *modulesv1.ModuleInstallationSpec) {
			if module := told.About.Edits[0].Module; module != nil {
				spec.Module = *module
			}
			if upgrade := told.About.Edits[0].Upgrade; upgrade != nil {
				spec.Upgrade = upgrade
			}
		})
	}
	obj := s.ready("app", "1.0.0")
	told := s.why("app", "2.0.0")
	s.agrees(told, obj)
	edit(told)
	s.held("app", "1.0.0", modulesv1.AwaitingApprovalReason, "")
	obj = s.until("app", "a plan is there", func(obj *modulesv1.ModuleInstallation) bool {
		return obj.Status.Pending != nil && obj.Status.Pending.Plan != nil && obj.Status.ObservedGeneration == obj.Generation
	})
	told = s.why("app", "2.0.0")
	s.agrees(told, obj)
	if !strings.Contains(told.Wants.Hold.Message, obj.Status.Pending.Plan.Digest) {
		t.Errorf("the plan that waits is not named: %+v", told.Wants)
	}
	edit(told)
	s.agrees(s.why("app", "1.0.0"), s.ready("app", "2.0.0"))
}
