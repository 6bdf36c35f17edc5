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

package replicas

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/synchub-dev/synchub/test/framework/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

var errUnreachable = errors.New("no route to host")

// replica is a running monitor of a test.
type replica struct {
	*Monitor
	clock *clocktesting.FakeClock
	ended chan error
}

func start(t *testing.T, name string, leads bool, reached error) replica {
	t.Helper()
	return startWith(t, name, leads, Options{Reach: func(context.Context) error { return reached }})
}

func startWith(t *testing.T, name string, leads bool, options Options) replica {
	t.Helper()
	scheme := runtime.NewScheme()
	g := NewWithT(t)
	g.Expect(coordinationv1.AddToScheme(scheme)).To(Succeed())
	hosting, err := client.New(suite.Target(t).Config, client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	elected := make(chan struct{})
	if leads {
		close(elected)
	}
	now := clocktesting.NewFakeClock(time.Unix(1_000_000, 0))
	options.Hosting, options.Namespace, options.Name, options.Elected, options.Clock, options.Log = hosting, metav1.NamespaceDefault, name, elected, now, logr.Discard()
	options.Pod = &metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: name, UID: "1"}
	monitor := New(options)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- monitor.Start(ctx) }()
	t.Cleanup(cancel)
	return replica{monitor, now, ended}
}

// peers returns the names of the replicas in this replica's registry, except its own.
func (r replica) peers() []string { return othersOf(r.registry.Self().ID, r.registry.Snapshot()) }

// TestYield has a leader that kcp does not answer, alone at first.
func TestYield(t *testing.T) {
	g := NewWithT(t)
	cut := start(t, "cut", true, errUnreachable)
	standby := start(t, "cut-standby", false, errUnreachable)
	g.Eventually(cut.clock.HasWaiters).Should(BeTrue())
	g.Eventually(cut.registry.Snapshot).Should(HaveLen(1))
	g.Eventually(standby.registry.Snapshot).Should(HaveLen(1))
	cut.clock.Step(2 * maxSilence)
	standby.clock.Step(2 * maxSilence)
	g.Consistently(cut.ended).WithTimeout(time.Second).ShouldNot(Receive(), "no replica reaches kcp, so none should take over")

	other := start(t, "other", false, nil)
	g.Eventually(other.registry.Snapshot).Should(HaveLen(1))
	g.Eventually(cut.peers).Should(ConsistOf("other"))
	cut.clock.Step(checkInterval)
	var err error
	g.Eventually(cut.ended).Should(Receive(&err))
	g.Expect(err).To(MatchError(ErrSteppedDown))
	g.Expect(err.Error()).To(And(ContainSubstring("2m10s"), ContainSubstring("other"), Not(ContainSubstring("standby"))))
	g.Expect(standby.ended).NotTo(Receive(), "a replica that does not lead has nothing to step down from")

	var leases coordinationv1.LeaseList
	g.Expect(other.Hosting.List(t.Context(), &leases, client.InNamespace(metav1.NamespaceDefault))).To(Succeed())
	var announced []string
	for _, lease := range leases.Items {
		if strings.HasPrefix(lease.Name, leasePrefix) {
			announced = append(announced, lease.Name)
			g.Expect(lease.OwnerReferences).To(HaveLen(1), "it is deleted with its Pod")
		}
	}
	g.Expect(announced).To(ConsistOf(leasePrefix + "-other"))
}

// Replicas of another group, and replicas that cannot work yet, are not among the live ones.
func TestGroupsAndReadiness(t *testing.T) {
	g := NewWithT(t)
	var ready atomic.Bool
	reach := func(context.Context) error { return nil }
	alone := startWith(t, "alone", false, Options{Reach: reach, Group: "other"})
	first := startWith(t, "first", false, Options{Reach: reach, Group: "shared"})
	second := startWith(t, "second", false, Options{Reach: reach, Group: "shared", IsReady: ready.Load})
	g.Eventually(alone.LiveReplicas).Should(ConsistOf("alone"))
	g.Eventually(first.LiveReplicas).Should(ConsistOf("first"))
	g.Eventually(second.peers).Should(ConsistOf("first"))
	g.Expect(second.LiveReplicas()).To(BeEmpty(), "it takes nothing")
	ready.Store(true)
	g.Eventually(first.LiveReplicas).WithTimeout(time.Minute).Should(ConsistOf("first", "second"))
	g.Eventually(second.LiveReplicas).Should(ConsistOf("first", "second"))
	ready.Store(false)
	g.Expect(second.mayAnnounce(t.Context())).To(Succeed(), "a cache that is filled later does not replace the Lease")
	g.Expect(alone.LiveReplicas()).To(ConsistOf("alone"))
}

// A replica finds its own name among the live ones even if its Lease has replaced characters of it.
func TestName(t *testing.T) {
	g := NewWithT(t)
	one := start(t, "Host_of.Somebody", false, nil)
	g.Eventually(one.LiveReplicas).Should(ContainElement(one.ID()))
	g.Expect(one.ID()).To(MatchRegexp(`^[a-z0-9.-]+$`))
}

// TestPatience has a leader that reached kcp a moment ago.
func TestPatience(t *testing.T) {
	g := NewWithT(t)
	leader := start(t, "leader", true, nil)
	start(t, "second", false, nil)
	g.Eventually(leader.peers).Should(ContainElement("second"))
	g.Expect(leader.checkLeadership()).To(Succeed())
	leader.clock.Step(maxSilence - time.Second)
	g.Expect(leader.checkLeadership()).To(Succeed())
	leader.clock.Step(time.Second)
	g.Expect(leader.checkLeadership()).To(MatchError(ErrSteppedDown))
	g.Expect(leader.reach(t.Context())).To(Succeed())
	g.Expect(leader.checkLeadership()).To(Succeed(), "kcp has answered")
}
