package packages_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/controllers/packages"
	"sluice.dev/sluice/internal/auth"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/forge"
	"sluice.dev/sluice/internal/kernel"
	"sluice.dev/sluice/internal/transport"
)

// still is a cluster in which all objects are there, and say nothing but whether they are suspended.
type still struct {
	client.Client

	isSuspended, isVariantSuspended bool
}

func (s *still) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	switch obj := obj.(type) {
	case *packagesv1.Repository:
		obj.Spec.Suspend = s.isSuspended
	case *packagesv1.PackageVariant:
		obj.Spec.Suspend = s.isVariantSuspended
	}
	return nil
}

// anyLogin is one for all forges.
type anyLogin struct{}

func (anyLogin) Git(context.Context, auth.GitRequest) (credential.Git, error) {
	return credential.Git{BearerToken: credential.NewSecret("token")}, nil
}

func (anyLogin) Data(context.Context, string, string, string) (map[string][]byte, error) {
	return nil, nil
}

func newReviewing(t *testing.T, cluster *still, now clock.PassiveClock) packages.Reviewing {
	t.Helper()
	connections := transport.New(transport.Options{AllowLoopback: true})
	t.Cleanup(connections.Close)
	return packages.NewReviewing(packages.Shared{
		Shell: kernel.Shell{Client: cluster, Clock: now, RequeueDependency: time.Second}, Credentials: anyLogin{}, Transport: connections,
		Asked: func(forge.Provider, string) {},
	})
}

// gitlab is one where nothing is asked for as yet. Each is called before it answers.
func gitlab(t *testing.T, each func(*http.Request)) string {
	t.Helper()
	number := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		each(r)
		made := map[string]string{}
		if r.Method == http.MethodGet {
			_, _ = w.Write([]byte("[]")) // Whoever asked may have gone.
			return
		}
		if err := json.NewDecoder(r.Body).Decode(&made); err != nil {
			t.Error(err)
		}
		number++
		_ = json.NewEncoder(w).Encode(map[string]any{ // Here as well.
			"iid": number, "state": "opened", "source_branch": made["source_branch"], "target_branch": "main", "description": made["description"],
		})
	}))
	t.Cleanup(server.Close)
	return server.URL + "/acme/shop.git"
}

// started is the queue of those that are to be looked at.
func started(t *testing.T, r packages.Reviewing) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	t.Helper()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(queue.ShutDown)
	if err := r.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	return queue
}

// turn looks at the one that is next in the queue.
func turn(t *testing.T, r packages.Reviewing, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	t.Helper()
	if queue.Len() == 0 {
		t.Fatal("nothing is to be looked at")
	}
	request, _ := queue.Get()
	defer queue.Done(request)
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
}

// TestForgesOfOneNamespaceHoldUpNoOther, however many of them fall silent.
func TestForgesOfOneNamespaceHoldUpNoOther(t *testing.T) {
	t.Parallel()
	r := newReviewing(t, &still{}, clock.RealClock{})
	end, silent, gaveUp, asked := make(chan struct{}), make(chan struct{}, 100), make(chan struct{}, 100), make(chan struct{}, 100)
	hangs := gitlab(t, func(r *http.Request) {
		silent <- struct{}{}
		select {
		case <-r.Context().Done():
			gaveUp <- struct{}{}
		case <-end:
		}
	})
	answers := gitlab(t, func(*http.Request) { asked <- struct{}{} })
	queue := started(t, r)
	var workers sync.WaitGroup
	t.Cleanup(func() {
		close(end)
		queue.ShutDown()
		workers.Wait()
	})
	for range 4 {
		workers.Go(func() {
			for {
				request, isOver := queue.Get()
				if isOver {
					return
				}
				if _, err := r.Reconcile(t.Context(), request); err != nil {
					t.Error(err)
				}
				queue.Done(request)
			}
		})
	}
	for _, name := range []string{"1", "2", "3", "4", "5", "6", "7", "8"} {
		r.Want(types.NamespacedName{Namespace: "a", Name: name}, hangs, "change"+name)
	}
	<-silent
	<-silent
	r.Want(types.NamespacedName{Namespace: "b", Name: "one"}, answers, "change")
	<-asked
	if len(gaveUp) > 0 {
		t.Errorf("it was asked once %d others had not answered", len(gaveUp))
	}
}

// TestASlowForgeHasItsTurnAndNoMore: each turn does something, and ends.
func TestASlowForgeHasItsTurnAndNoMore(t *testing.T) {
	t.Parallel()
	now := clocktesting.NewFakeClock(time.Unix(0, 0))
	r := newReviewing(t, &still{}, now)
	posted := 0
	url := gitlab(t, func(r *http.Request) {
		if now.Step(20 * time.Second); r.Method == http.MethodPost {
			posted++
		}
	})
	queue := started(t, r)
	r.Want(types.NamespacedName{Namespace: "a", Name: "slow"}, url, "1", "2", "3", "4")
	for i, want := range []int{1, 2, 3, 4, 4} {
		if turn(t, r, queue); posted != want {
			t.Fatalf("after turn %d, %d were asked for, want %d", i+1, posted, want)
		}
	}
	if queue.Len() > 0 {
		t.Error("it has another turn, with nothing to do")
	}
}

// TestNothingIsAskedForASuspendedRepository until it is so no more.
func TestNothingIsAskedForASuspendedRepository(t *testing.T) {
	t.Parallel()
	cluster := &still{isSuspended: true}
	r := newReviewing(t, cluster, clock.RealClock{})
	asked := 0
	repository := types.NamespacedName{Namespace: "a", Name: "suspended"}
	r.Want(repository, gitlab(t, func(*http.Request) { asked++ }), "change")
	for _, want := range []int{0, 2} {
		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: repository}); err != nil || asked != want {
			t.Fatalf("the forge was asked %d times, want %d: %v", asked, want, err)
		}
		cluster.isSuspended = false
	}
}

// TestAResumedVariantIsAskedFor at once: what it wants is what it wanted before.
func TestAResumedVariantIsAskedFor(t *testing.T) {
	t.Parallel()
	cluster := &still{isVariantSuspended: true}
	r := newReviewing(t, cluster, clock.RealClock{})
	queue, posted := started(t, r), 0
	url := gitlab(t, func(r *http.Request) {
		if r.Method == http.MethodPost {
			posted++
		}
	})
	for i := range 2 {
		r.Want(types.NamespacedName{Namespace: "a", Name: "one"}, url, "change")
		if turn(t, r, queue); posted != i {
			t.Fatalf("%d were asked for, want %d", posted, i)
		}
		cluster.isVariantSuspended = false
	}
}

// adds counts what is put into the queue from outside.
type adds struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]

	now, later atomic.Int32
}

func (a *adds) Add(request reconcile.Request) {
	a.now.Add(1)
	a.TypedRateLimitingInterface.Add(request)
}

func (a *adds) AddAfter(request reconcile.Request, after time.Duration) {
	a.later.Add(1)
	a.TypedRateLimitingInterface.AddAfter(request, after)
}

// TestChangesInGitDoNotEndThePauseOfAForge that fails; who asks does. The queue knows when it ends, and no timer beside it.
func TestChangesInGitDoNotEndThePauseOfAForge(t *testing.T) {
	t.Parallel()
	r := newReviewing(t, &still{}, clocktesting.NewFakeClock(time.Unix(0, 0)))
	asked := 0
	fails := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.WriteHeader(http.StatusBadGateway)
	}))
	t.Cleanup(fails.Close)
	queue := &adds{TypedRateLimitingInterface: started(t, r)}
	if err := r.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	repository := types.NamespacedName{Namespace: "a", Name: "one"}
	r.Want(repository, fails.URL+"/acme/shop.git", "change")
	turn(t, r, queue)
	once := asked
	for range 3 {
		r.Moved(repository)
		turn(t, r, queue)
	}
	if asked != once {
		t.Errorf("it was asked %d more times in its pause", asked-once)
	}
	if now, later := queue.now.Load(), queue.later.Load(); now != 4 || later != 4 {
		t.Errorf("it was woken %d times at once and %d times for later, want 4 and 4", now, later)
	}
	r.Asked(repository)
	if turn(t, r, queue); asked == once {
		t.Error("it was not asked when somebody wanted that")
	}
}
