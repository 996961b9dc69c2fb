package e2e

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// outage is how an artifact server is away.
type outage string

const (
	outageNotFound outage = "it has lost the artifact"
	outageRefused  outage = "nobody is there"
	outageCut      outage = "it stops in the middle"
)

// unreliable is a front that can be away.
type unreliable struct {
	front
	is atomic.Value
}

func newUnreliable(t *testing.T) *unreliable {
	t.Helper()
	u := &unreliable{}
	u.fail("")
	u.flag = publish(t, u)
	return u
}

// fail has it be away from now on; the empty outage ends that.
func (u *unreliable) fail(how outage) { u.is.Store(how) }

// ServeHTTP implements http.Handler.
func (u *unreliable) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch u.is.Load() {
	case outageNotFound:
		http.NotFound(w, r)
	case outageRefused:
		panic(http.ErrAbortHandler)
	case outageCut:
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write([]byte("half"))
		panic(http.ErrAbortHandler)
	default:
		u.front.ServeHTTP(w, r)
	}
}

// TestModuleOutageOfItsSourceIsWaitedOut: while nobody serves the artifact of a new release, the old one is kept and
// healed, and the condition says why; nothing has to be done for it to go on. So it is when the storage is wiped.
func TestModuleOutageOfItsSourceIsWaitedOut(t *testing.T) {
	t.Parallel()
	f := newUnreliable(t) // It has to outlive the program.
	s := newModuleScene(t, f.flag)
	s.start()
	f.manager.Store(s.manager)
	s.release("1.0.0", fooFiles("1.0.0"))
	s.install("app")
	s.ready("app", "1.0.0")

	for i, outage := range []outage{outageNotFound, outageRefused, outageCut} {
		version := fmt.Sprintf("1.%d.0", i+1)
		f.fail(outage)
		s.release(version, fooFiles(version))
		obj := s.until("app", "cannot fetch: "+string(outage), func(obj *modulesv1.ModuleInstallation) bool {
			upToDate := conditions.Get(obj, modulesv1.UpToDateCondition)
			return upToDate != nil && upToDate.Status == metav1.ConditionFalse && upToDate.Reason == modulesv1.ArtifactUnavailableReason
		})
		t.Logf("%s: %s", outage, conditions.GetMessage(obj, modulesv1.UpToDateCondition))
		s.breaks("app", fmt.Sprintf("1.%d.0", i))
		s.exact("app", fooMembers("app", fmt.Sprintf("1.%d.0", i))...)
		f.fail("")
		s.ready("app", version)
		s.exact("app", fooMembers("app", version)...)
	}

	// All that was stored is lost with the pod. What heals is fetched again, and by its digest the same.
	s.stop()
	s.wipe()
	s.drop("settings-app")
	s.start()
	f.manager.Store(s.manager)
	s.becomes("settings-app", "1.3.0")
	s.release("1.4.0", fooFiles("1.4.0"))
	s.ready("app", "1.4.0")
	s.exact("app", fooMembers("app", "1.4.0")...)
}
