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

package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

// measured is the number of changes that a healthy target's latency is measured by. The slowest of so few is their 99th percentile.
const measured = 30

// healthyTarget is a SyncTarget without faults beside faulty ones. It stands for the cluster "hosting".
type healthyTarget struct {
	inventory *installation.Inventory
	namespace string
	mailbox   *rest.Config
	arrived   *arrivals
	rounds    int
	// usual is the 99th percentile without a fault.
	usual time.Duration
}

// newHealthyTarget returns the shared SyncTarget of the cluster, with objects in the namespace, and measures its usual latency.
func newHealthyTarget(ctx context.Context, in string) *healthyTarget {
	GinkgoHelper()
	inventory := sharedInventory()
	b := &healthyTarget{inventory: inventory, namespace: in, mailbox: register(ctx, inventory, "hosting", "hosting")}
	apply(ctx, b.mailbox, documents(namespace(in), everythingIn(in)))
	fill(ctx, b.mailbox, in, "change-", measured)
	Eventually(func() map[string]string { return identities(ctx, target("hosting"), configMaps, in, "change-") }).WithContext(ctx).Should(HaveLen(measured))
	b.arrived = followStates(ctx, target("hosting"))
	// The first changes of all take what the next ones do not.
	b.make(ctx)
	b.usual = b.measure(ctx, "no fault")
	return b
}

// measure makes changes in the mailbox, and reports how long they took to the target.
func (b *healthyTarget) measure(ctx context.Context, beside string) (slowest time.Duration) {
	GinkgoHelper()
	took := b.make(ctx)
	slices.Sort(took)
	slowest = took[measured-1]
	times := 1.0
	if b.usual > 0 {
		times = float64(slowest) / float64(b.usual)
	}
	AddReportEntry("other targets beside "+beside, fmt.Sprintf("median %s, p99 %s, %.1f times the latency without a fault",
		took[measured/2].Round(time.Millisecond), slowest.Round(time.Millisecond), times), ReportEntryVisibilityAlways)
	Expect(framework.Condition(ctx, b.inventory.Config, syncTargets, "", "hosting", "Ready")).To(Equal("True"))
	return slowest
}

// make makes changes in the mailbox, expects that each comes to the target, and once, and returns how long they took.
func (b *healthyTarget) make(ctx context.Context) []time.Duration {
	GinkgoHelper()
	b.rounds++
	entry, sent := fmt.Sprintf("round %d", b.rounds), make([]time.Time, measured)
	of := func(i int) types.NamespacedName {
		return types.NamespacedName{Namespace: b.namespace, Name: fmt.Sprintf("change-%d", i)}
	}
	for i := range measured {
		sent[i] = time.Now()
		patch(ctx, b.mailbox, configMaps, b.namespace, of(i).Name, fmt.Sprintf(`{"data": {"entry": %q}}`, entry))
	}
	took := make([]time.Duration, measured)
	for i := range measured {
		Eventually(b.arrived.last).WithContext(ctx).WithArguments(of(i)).Should(Equal(entry), "%s", of(i))
		states := b.arrived.of(of(i))
		Expect(states).To(HaveLen(b.rounds), "%s must be written once for each change", of(i))
		took[i] = states[b.rounds-1].at.Sub(sent[i])
	}
	return took
}

// state is one that a ConfigMap had from a time on.
type state struct {
	entry string
	at    time.Time
}

// arrivals are the states of the ConfigMaps of a cluster since it is followed, in their order, and which of them were deleted.
type arrivals struct {
	lock    sync.Mutex
	states  map[types.NamespacedName][]state
	deleted []types.NamespacedName
}

// followStates follows the ConfigMaps of a cluster until the spec ends.
func followStates(ctx context.Context, config *rest.Config) *arrivals {
	GinkgoHelper()
	client, err := dynamic.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	known, err := client.Resource(configMaps).List(ctx, metav1.ListOptions{Limit: 1})
	Expect(err).NotTo(HaveOccurred())
	events, err := client.Resource(configMaps).Watch(ctx, metav1.ListOptions{ResourceVersion: known.GetResourceVersion()})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(events.Stop)
	followed := &arrivals{states: map[types.NamespacedName][]state{}}
	go func() {
		for event := range events.ResultChan() {
			followed.record(event)
		}
	}()
	return followed
}

func (a *arrivals) record(event watch.Event) {
	object, ok := event.Object.(*unstructured.Unstructured)
	if !ok {
		return
	}
	key := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
	entry, _, _ := unstructured.NestedString(object.Object, "data", "entry")
	a.lock.Lock()
	defer a.lock.Unlock()
	switch event.Type {
	case watch.Added, watch.Modified:
		a.states[key] = append(a.states[key], state{entry, time.Now()})
	case watch.Deleted:
		a.deleted = append(a.deleted, key)
	case watch.Bookmark, watch.Error:
	}
}

// of returns the states that an object has had since.
func (a *arrivals) of(key types.NamespacedName) []state {
	a.lock.Lock()
	defer a.lock.Unlock()
	return slices.Clone(a.states[key])
}

// entries returns what the states of an object have held.
func (a *arrivals) entries(key types.NamespacedName) (entries []string) {
	for _, one := range a.of(key) {
		entries = append(entries, one.entry)
	}
	return entries
}

// last returns what the latest state of an object holds.
func (a *arrivals) last(key types.NamespacedName) string {
	states := a.of(key)
	if len(states) == 0 {
		return ""
	}
	return states[len(states)-1].entry
}

// gone returns the objects of a namespace that were deleted.
func (a *arrivals) gone(namespace string) (names []string) {
	a.lock.Lock()
	defer a.lock.Unlock()
	for _, key := range a.deleted {
		if key.Namespace == namespace {
			names = append(names, key.Name)
		}
	}
	return names
}
