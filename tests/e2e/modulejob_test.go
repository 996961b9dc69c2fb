package e2e

import (
	"context"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const migration = `apiVersion: batch/v1
kind: Job
metadata:
  name: migration
spec:
  ttlSecondsAfterFinished: 60
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: foo}]
`

// TestAJobThatItsTTLRemovedHasRun: Kubernetes removes a Job that has finished, which undoes nothing. It does not run twice.
func TestAJobThatItsTTLRemovedHasRun(t *testing.T) {
	t.Parallel()
	s := newRunningModules(t)
	s.release("1.0.0", map[string]string{"job.yaml": migration, "settings.yaml": settings("settings", "1.0.0")})
	s.install("app")
	job := &batchv1.Job{}
	s.eventually("the job is there", func(ctx context.Context) (bool, string) {
		return env.Client.Get(ctx, s.key("migration"), job) == nil, ""
	})
	s.finished(job, time.Now().Add(time.Hour))
	s.ready("app", "1.0.0")
	s.finished(job, time.Now().Add(-time.Hour))
	gone := func(ctx context.Context) (bool, string) {
		err := env.Client.Get(ctx, s.key("migration"), &batchv1.Job{})
		return apierrors.IsNotFound(err), "the job is there"
	}
	s.eventually("its TTL removes the job", gone)
	s.reconcile("app")
	s.ready("app", "1.0.0")
	if still, what := gone(t.Context()); !still {
		t.Error(what)
	}
}

// finished is the job controller, of which none runs here: the Job has been done at that time.
func (s moduleScene) finished(job *batchv1.Job, at time.Time) {
	s.t.Helper()
	began, done := metav1.NewTime(job.CreationTimestamp.Time), metav1.NewTime(at)
	job.Status.StartTime, job.Status.Succeeded, job.Status.Conditions = &began, 1, nil
	if job.Status.CompletionTime == nil {
		job.Status.CompletionTime = &done
	}
	for _, kind := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
			Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: done, LastProbeTime: done,
		})
	}
	if err := env.Client.Status().Update(s.t.Context(), job); err != nil {
		s.t.Fatal(err)
	}
}
