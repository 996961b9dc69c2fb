package app

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"sluice.dev/sluice/tests/testenv"
)

var env *testenv.Env

func TestEventsAreRecordedAndCounted(t *testing.T) {
	t.Parallel()
	mgr, err := ctrl.NewManager(env.Config, ctrl.Options{Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	events, err := newRecorder(mgr, "host-1")
	if err != nil {
		t.Fatal(err)
	}
	about := &corev1.ObjectReference{APIVersion: "source.toolkit.fluxcd.io/v1", Kind: "GitRepository", Namespace: env.NewNamespace(t), Name: "subject", UID: "u"}
	for range 3 {
		events.AnnotatedEventf(about, map[string]string{"key": "value"}, corev1.EventTypeWarning, "Broken", "it broke: %s", "badly")
	}
	events.AnnotatedEventf(about, nil, corev1.EventTypeNormal, "Mended", "it works")
	ours := *about
	ours.APIVersion, ours.Kind = "modules.sluice.dev/v1alpha1", "ModuleInstallation"
	events.AnnotatedEventf(&ours, nil, corev1.EventTypeNormal, "Installed", "it is there")

	// What was emitted is written when the call returns.
	var list corev1.EventList
	if err := env.Client.List(t.Context(), &list, client.InNamespace(about.Namespace)); err != nil {
		t.Fatal(err)
	}
	type told struct {
		Type, Reason, Message, Component, Controller, Host, Value string
		Count                                                     int32
	}
	got := map[string]told{}
	for _, e := range list.Items {
		got[e.Reason] = told{e.Type, e.Reason, e.Message, e.Source.Component, e.ReportingController, e.Source.Host, e.Annotations["key"], e.Count}
	}
	want := map[string]told{
		"Broken": {"Warning", "Broken", "it broke: badly", "source-controller", "source-controller", "host-1", "value", 3},
		"Mended": {"Normal", "Mended", "it works", "source-controller", "source-controller", "host-1", "", 1},
		// Only of sources is Sluice Flux's controller.
		"Installed": {"Normal", "Installed", "it is there", "sluice", "sluice", "host-1", "", 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
