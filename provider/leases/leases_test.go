/*
Copyright 2026 The synchub Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package leases

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/provider/fence"
)

const (
	namespace, name = "hub", "synchub"
	leaseDuration   = 3 * time.Second
	renewDeadline   = 2 * time.Second
	renewPeriod     = time.Second
)

var errCut = errors.New("the network is parted")

// server is a hosting cluster that refuses writes by old versions.
type server struct {
	*fake.Clientset
	lock    sync.Mutex
	version int
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{Clientset: fake.NewClientset()}
	write := func(action clienttesting.Action) (bool, runtime.Object, error) {
		s.lock.Lock()
		defer s.lock.Unlock()
		lease := action.(clienttesting.CreateAction).GetObject().(*coordinationv1.Lease).DeepCopy()
		resource := coordinationv1.SchemeGroupVersion.WithResource("leases")
		stored, err := s.Tracker().Get(resource, namespace, name)
		s.version++
		switch isCreate := action.GetVerb() == "create"; {
		case isCreate && err == nil:
			return true, nil, apierrors.NewAlreadyExists(resource.GroupResource(), name)
		case isCreate:
			lease.ResourceVersion = strconv.Itoa(s.version)
			return true, lease, s.Tracker().Create(resource, lease, namespace)
		case err != nil:
			return true, nil, err
		case stored.(*coordinationv1.Lease).ResourceVersion != lease.ResourceVersion:
			return true, nil, apierrors.NewConflict(resource.GroupResource(), name, errors.New("another version"))
		}
		lease.ResourceVersion = strconv.Itoa(s.version)
		return true, lease, s.Tracker().Update(resource, lease, namespace)
	}
	s.PrependReactor("create", "leases", write)
	s.PrependReactor("update", "leases", write)
	s.PrependWatchReactor("leases", func(action clienttesting.Action) (bool, watch.Interface, error) {
		// The fake sends no bookmarks, and a watch that begins with a list waits for one.
		isList := action.(clienttesting.WatchActionImpl).ListOptions.SendInitialEvents != nil
		return isList, nil, apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil)
	})
	return s
}

// delete removes the Lease, as a user may do.
func (s *server) delete(t *testing.T) {
	t.Helper()
	if err := s.CoordinationV1().Leases(namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// replica takes part in the election for the Lease, and counts its requests.
type replica struct {
	fence         *fence.Fence
	writes, reads atomic.Int64
	isCut, leads  atomic.Bool
	ledAt         atomic.Int64
	stop          func()
}

// inner counts the requests of a lock to the server, and fails while the replica is cut off.
type inner struct {
	resourcelock.Interface
	of *replica
}

func (i inner) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	i.of.reads.Add(1)
	if i.of.isCut.Load() {
		return nil, nil, errCut
	}
	return i.Interface.Get(ctx)
}

func (i inner) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return i.write(ctx, record, i.Interface.Create)
}

func (i inner) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return i.write(ctx, record, i.Interface.Update)
}

func (i inner) write(ctx context.Context, record resourcelock.LeaderElectionRecord, write func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	i.of.writes.Add(1)
	if i.of.isCut.Load() {
		return errCut
	}
	return write(ctx, record)
}

// start starts a replica. With watches false it may not watch Leases.
func (s *server) start(t *testing.T, identity string, watches bool) *replica {
	t.Helper()
	r := &replica{fence: fence.New(clock.RealClock{})}
	client := s.CoordinationV1()
	leases := client.Leases(namespace)
	if !watches {
		forbidden := fake.NewClientset()
		refuse := func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(coordinationv1.Resource("leases"), "", errors.New("no"))
		}
		forbidden.PrependReactor("list", "leases", refuse)
		forbidden.PrependWatchReactor("leases", func(clienttesting.Action) (bool, watch.Interface, error) {
			return true, nil, apierrors.NewForbidden(coordinationv1.Resource("leases"), "", errors.New("no"))
		})
		leases = forbidden.CoordinationV1().Leases(namespace)
	}
	watcher := NewWatcher(Options{Leases: leases, Name: name, Clock: clock.RealClock{}, Log: logr.Discard()})
	lock := &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Client: client, LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}
	deadline, tryPeriod := Timing(renewDeadline, renewPeriod)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:          watcher.Lock(r.fence.Lock(inner{lock, r}, renewDeadline), name, renewPeriod),
		LeaseDuration: leaseDuration, RenewDeadline: deadline, RetryPeriod: tryPeriod, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { r.ledAt.Store(time.Now().UnixNano()); r.leads.Store(true) },
			OnStoppedLeading: func() { r.leads.Store(false) },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { _ = watcher.Start(ctx) })
	running.Go(func() { elector.Run(ctx); close(ended) })
	r.stop = func() { cancel(); <-ended }
	t.Cleanup(func() { cancel(); running.Wait() })
	return r
}

// waitUntilLeads waits until the replica leads, and returns for how long it had to wait since then.
func (r *replica) waitUntilLeads(g Gomega, since time.Time) time.Duration {
	g.Eventually(r.leads.Load).WithTimeout(30*time.Second).WithPolling(10*time.Millisecond).Should(BeTrue(), "it does not lead")
	return time.Unix(0, r.ledAt.Load()).Sub(since)
}

// At rest the leader writes once in a renew period, and a standby sends nothing.
func TestRequestsAtRest(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s := newServer(t)
	leader := s.start(t, "a", true)
	leader.waitUntilLeads(g, time.Now())
	standby := s.start(t, "b", true)
	time.Sleep(renewPeriod)
	before := []int64{leader.writes.Load(), leader.reads.Load(), standby.writes.Load(), standby.reads.Load()}
	const periods = 5
	g.Eventually(leader.writes.Load).WithTimeout(time.Minute).Should(BeNumerically(">=", before[0]+periods), "renewals")
	g.Expect(leader.reads.Load()).To(Equal(before[1]))
	g.Expect(standby.writes.Load()).To(BeZero())
	g.Expect(standby.reads.Load()-before[3]).To(BeNumerically("<=", 1), "a standby reads, although the watch shows that the leader lives")
	g.Expect(leader.fence.IsOpen()).To(BeTrue())
	g.Expect(standby.fence.IsOpen()).To(BeFalse())
}

// A standby leads soon after the leader has released the Lease, and soon after the lease duration if the leader is gone. The fences of two
// replicas are never open together.
func TestTakeovers(t *testing.T) {
	t.Parallel()
	for what, test := range map[string]struct {
		watches bool
		end     func(s *server, leader *replica)
		// least is how long a takeover takes at least.
		least time.Duration
	}{
		"a release":                         {true, func(_ *server, leader *replica) { leader.stop() }, 0},
		"a release without a watch":         {false, func(_ *server, leader *replica) { leader.stop() }, 0},
		"a leader that is cut off":          {true, func(_ *server, leader *replica) { leader.isCut.Store(true) }, leaseDuration - renewPeriod},
		"a cut off leader, no watch":        {false, func(_ *server, leader *replica) { leader.isCut.Store(true) }, leaseDuration - renewPeriod},
		"a Lease that another client takes": {true, func(s *server, leader *replica) { leader.isCut.Store(true); s.delete(t) }, 0},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			s := newServer(t)
			leader := s.start(t, "a", true)
			leader.waitUntilLeads(g, time.Now())
			standby := s.start(t, "b", test.watches)
			time.Sleep(2 * renewPeriod)
			var both atomic.Bool
			watching := make(chan struct{})
			defer close(watching)
			go func() {
				for {
					select {
					case <-watching:
						return
					case <-time.After(time.Millisecond):
						if leader.fence.IsOpen() && standby.fence.IsOpen() {
							both.Store(true)
						}
					}
				}
			}()
			began := time.Now()
			test.end(s, leader)
			took := standby.waitUntilLeads(g, began)
			t.Logf("%s: the standby leads after %s", what, took)
			g.Expect(took).To(BeNumerically(">=", test.least))
			if what != "a Lease that another client takes" {
				g.Expect(both.Load()).To(BeFalse(), "two replicas may write at once")
			}
		})
	}
}

// A leader notices that a user has given its Lease to another replica.
func TestAStolenLease(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	s := newServer(t)
	leader := s.start(t, "a", true)
	leader.waitUntilLeads(g, time.Now())
	leases := s.CoordinationV1().Leases(namespace)
	g.Eventually(func(g Gomega) {
		lease, err := leases.Get(t.Context(), name, metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		lease.Spec.HolderIdentity = new("thief")
		_, err = leases.Update(t.Context(), lease, metav1.UpdateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
	}).Should(Succeed())
	g.Eventually(leader.fence.IsOpen).WithTimeout(30 * time.Second).WithPolling(5 * time.Millisecond).Should(BeFalse())
}

// The election's settings are valid whenever the hub's are.
func TestTiming(t *testing.T) {
	for _, times := range []struct{ deadline, period time.Duration }{
		{10 * time.Second, 2 * time.Second}, {10 * time.Second, 8 * time.Second}, {1201 * time.Millisecond, time.Second}, {10 * time.Second, time.Millisecond},
	} {
		deadline, tryPeriod := Timing(times.deadline, times.period)
		if tryPeriod <= 0 || tryPeriod > maxTryPeriod || deadline <= time.Duration(leaderelection.JitterFactor*float64(tryPeriod)) || deadline > times.deadline {
			t.Errorf("%+v: an election with %s and %s", times, deadline, tryPeriod)
		}
	}
}
