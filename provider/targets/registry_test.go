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

package targets

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/pprof"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/targets/kubeconfig"
	"github.com/synchub-dev/synchub/provider/targets/metadatapatch"
	"github.com/synchub-dev/synchub/test/fixtures"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

func TestRegistryKeepsAConnectionWhileNothingChanges(t *testing.T) {
	g := NewWithT(t)
	target := steady(t)
	proxy := newFlakyProxy(t, target)
	kubeconfig := kubeconfigAt(t, target, proxy.URL())
	registry := newRegistry(t.Context(), t, clock.RealClock{})
	connect := func(kubeconfig []byte, limits kcp.Limits) (connection *Connection) {
		t.Helper()
		suite.Eventually(t, func(g Gomega) {
			var err error
			connection, err = registry.Connect(syncTarget, kubeconfig, limits)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(registry.hasSuccessor()).To(BeFalse())
		})
		g.Expect(connection.SyncTarget).To(Equal(syncTarget))
		current, ok := registry.Get(syncTarget)
		g.Expect(ok).To(BeTrue())
		g.Expect(current).To(BeIdenticalTo(connection))
		suite.Eventually(t, func(g Gomega) { g.Expect(connection.Health.IsUp()).To(BeTrue()) })
		return connection
	}
	_, ok := registry.Get(syncTarget)
	g.Expect(ok).To(BeFalse())

	current := connect(kubeconfig, kcp.Limits{})
	for _, same := range []kcp.Limits{{}, registry.options.Limits, {QPS: registry.options.Limits.QPS}, {Burst: -1}} {
		g.Expect(connect(kubeconfig, same)).To(BeIdenticalTo(current))
	}
	again := func() { _, _ = registry.Connect(syncTarget, kubeconfig, kcp.Limits{}) }
	g.Expect(testing.AllocsPerRun(20, again)).To(BeNumerically("<", 100), "an unchanged kubeconfig is not parsed again")
	for name, change := range map[string]func() *Connection{
		"the kubeconfig": func() *Connection { return connect(append(kubeconfig, "# changed"...), kcp.Limits{}) },
		"the rate":       func() *Connection { return connect(kubeconfig, kcp.Limits{QPS: 1}) },
		"the burst":      func() *Connection { return connect(kubeconfig, kcp.Limits{Burst: 7}) },
	} {
		before := connect(kubeconfig, kcp.Limits{})
		after := change()
		g.Expect(after).NotTo(BeIdenticalTo(before), name)
		// The former connection is closed, and stays closed.
		suite.Eventually(t, func(g Gomega) {
			_, err := before.Objects.Get(t.Context(), namespacesResource, types.NamespacedName{Name: "default"})
			g.Expect(err).To(HaveOccurred())
			g.Expect(proxy.Open()).To(Equal(1))
		})
	}
}

// hasSuccessor reports whether a connection waits for the target's first answer.
func (f *testRegistry) hasSuccessor() bool {
	f.lock.RLock()
	defer f.lock.RUnlock()
	return len(f.successors) > 0
}

// While credentials change, there is always a working connection, if any credentials work.
func TestChangedCredentialsLeaveNoGap(t *testing.T) {
	g := NewWithT(t)
	before, after := newScriptedServer(t), newScriptedServer(t)
	held := make(chan struct{})
	after.hold.Store(&held)
	registry := newRegistry(t.Context(), t, clock.RealClock{})
	connect := func(kubeconfig []byte) *Connection {
		t.Helper()
		connection, err := registry.Connect(syncTarget, kubeconfig, kcp.Limits{})
		g.Expect(err).NotTo(HaveOccurred())
		return connection
	}
	old := connect(kubeconfigFor(t, before.Server))
	suite.Eventually(t, func(g Gomega) { g.Expect(old.Health.IsUp()).To(BeTrue()) })
	changes := registry.changes.Load()

	// The target must answer the new connection first; the change is published then.
	changed := kubeconfigFor(t, after.Server)
	for range 3 {
		g.Expect(connect(changed)).To(BeIdenticalTo(old))
	}
	g.Expect(registry.hasSuccessor()).To(BeTrue())
	close(held)
	var next *Connection
	suite.Eventually(t, func(g Gomega) {
		next = connect(changed)
		another := next != old
		g.Expect(another).To(BeTrue())
	})
	suite.Eventually(t, func(g Gomega) { g.Expect(registry.changes.Load()).To(BeNumerically(">", changes)) })
	g.Expect(next.Health.IsUp()).To(BeTrue())
	g.Expect(after.probes.Load()).To(BeEquivalentTo(1))
	current, _ := registry.Get(syncTarget)
	g.Expect(current).To(BeIdenticalTo(next))
	// Running requests may end, and then the former connection is closed.
	suite.Eventually(t, func(g Gomega) { g.Expect(old.env.ctx.Err()).To(HaveOccurred()) })
	g.Expect(next.Health.IsUp()).To(BeTrue())

	// Credentials that the target does not accept still belong to the SyncTarget.
	before.set(&before.version, status(http.StatusUnauthorized, metav1.StatusReasonUnauthorized))
	suite.Eventually(t, func(g Gomega) {
		last := connect(kubeconfigFor(t, before.Server))
		// A failure message would read the connections concurrently.
		another := last != next
		g.Expect(another).To(BeTrue())
		g.Expect(last.Health.Get().Reason).To(Equal(ReasonUnauthorized))
	})
}

func TestCredentialsThatChangeTwice(t *testing.T) {
	g := NewWithT(t)
	first, second, third := newScriptedServer(t), newScriptedServer(t), newScriptedServer(t)
	held := make(chan struct{})
	t.Cleanup(func() { close(held) })
	second.hold.Store(&held)
	third.hold.Store(&held)
	registry := newRegistry(t.Context(), t, clock.RealClock{})
	connect := func(server *scriptedServer) *Connection {
		t.Helper()
		connection, err := registry.Connect(syncTarget, kubeconfigFor(t, server.Server), kcp.Limits{})
		g.Expect(err).NotTo(HaveOccurred())
		return connection
	}
	successor := func() *Connection {
		registry.lock.RLock()
		defer registry.lock.RUnlock()
		return registry.successors[syncTarget]
	}
	current := connect(first)
	suite.Eventually(t, func(g Gomega) { g.Expect(current.Health.IsUp()).To(BeTrue()) })
	g.Expect(connect(second)).To(BeIdenticalTo(current))
	given := successor()
	g.Expect(connect(third)).To(BeIdenticalTo(current))
	suite.Eventually(t, func(g Gomega) { g.Expect(given.env.ctx.Err()).To(HaveOccurred()) })
	given = successor()
	g.Expect(connect(first)).To(BeIdenticalTo(current))
	g.Expect(registry.hasSuccessor()).To(BeFalse(), "the credentials changed back")
	suite.Eventually(t, func(g Gomega) { g.Expect(given.env.ctx.Err()).To(HaveOccurred()) })

	// A connection that does not work any more is replaced without waiting.
	g.Expect(connect(second)).To(BeIdenticalTo(current))
	waiting := successor()
	first.set(&first.version, answer{http.StatusInternalServerError, "broken"})
	current.Health.ProbeNow()
	suite.Eventually(t, func(g Gomega) { g.Expect(current.Health.IsUp()).To(BeFalse()) })
	g.Expect(connect(second)).To(BeIdenticalTo(waiting))

	g.Expect(connect(third)).NotTo(BeIdenticalTo(waiting))
	registry.Disconnect(syncTarget)
	_, ok := registry.Get(syncTarget)
	g.Expect(ok).To(BeFalse())
}

func TestRegistryRefuses(t *testing.T) {
	g := NewWithT(t)
	target := steady(t)
	proxy := newFlakyProxy(t, target)
	registry := newRegistry(t.Context(), t, clock.RealClock{})
	good := kubeconfigAt(t, target, proxy.URL())
	connection, err := registry.Connect(syncTarget, good, kcp.Limits{})
	g.Expect(err).NotTo(HaveOccurred())
	suite.Eventually(t, func(g Gomega) { g.Expect(registry.changes.Load()).To(BeEquivalentTo(1)) })
	g.Expect(connection.Health.IsUp()).To(BeTrue())

	// Credentials that are not accepted any more are not used any more.
	_, err = registry.Connect(syncTarget, []byte(fixtures.Kubeconfig(goodCluster, "exec: {command: x}")), kcp.Limits{})
	var refused *kubeconfig.InvalidError
	g.Expect(errors.As(err, &refused)).To(BeTrue(), "%v", err)
	_, ok := registry.Get(syncTarget)
	g.Expect(ok).To(BeFalse())
	g.Expect(registry.changes.Load()).To(BeEquivalentTo(2))
	suite.Eventually(t, func(g Gomega) { g.Expect(proxy.Open()).To(BeZero()) })

	// No error shows the invalid content, and each closes the former connection.
	for name, content := range map[string]string{
		"the CA":                     fixtures.Kubeconfig("server: https://x, certificate-authority-data: "+secretData, goodUser),
		"a certificate":              fixtures.Kubeconfig(goodCluster, "client-certificate-data: "+secretData+", client-key-data: "+secretData),
		"a token and a password too": fixtures.Kubeconfig(goodCluster, goodUser+", username: me, password: "+secret),
	} {
		_, err := registry.Connect(syncTarget, good, kcp.Limits{})
		g.Expect(err).NotTo(HaveOccurred())
		_, err = registry.Connect(syncTarget, []byte(content), kcp.Limits{})
		g.Expect(err).To(HaveOccurred(), name)
		expectNoSecret(t, err.Error())
		_, ok := registry.Get(syncTarget)
		g.Expect(ok).To(BeFalse(), name)
	}
	suite.Eventually(t, func(g Gomega) { g.Expect(proxy.Open()).To(BeZero()) })
}

func TestRegistryConnectsOnlyWhileItRuns(t *testing.T) {
	g := NewWithT(t)
	target := steady(t)
	proxy := newFlakyProxy(t, target)
	kubeconfig := kubeconfigAt(t, target, proxy.URL())
	idle := NewRegistry(Options{Clock: clock.RealClock{}})
	_, err := idle.Connect(syncTarget, kubeconfig, kcp.Limits{})
	g.Expect(err).To(MatchError(ErrNotRunning))

	ctx, cancel := context.WithCancel(t.Context())
	registry := newRegistry(ctx, t, clock.RealClock{})
	connection, err := registry.Connect(syncTarget, kubeconfig, kcp.Limits{})
	g.Expect(err).NotTo(HaveOccurred())
	suite.Eventually(t, func(g Gomega) { g.Expect(connection.Health.IsUp()).To(BeTrue()) })
	cancel()
	suite.Eventually(t, func(g Gomega) {
		_, ok := registry.Get(syncTarget)
		g.Expect(ok).To(BeFalse())
		g.Expect(proxy.Open()).To(BeZero())
	})
	_, err = registry.Connect(syncTarget, kubeconfig, kcp.Limits{})
	g.Expect(err).To(MatchError(ErrNotRunning))
	_, err = connection.Objects.Create(t.Context(), configMaps, kinds[0].object("default", "too-late"))
	g.Expect(err).To(HaveOccurred())
}

func TestDisconnectLeavesNothing(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	target := steady(t)
	proxy := newFlakyProxy(t, target)
	registry := newRegistry(ctx, t, clock.RealClock{})
	registry.Disconnect("another")
	g.Expect(registry.changes.Load()).To(BeZero())

	var connection *Connection
	caches, stopCaches := context.WithCancel(ctx)
	defer stopCaches()
	// All goroutines that are started in this function, directly or indirectly, have the label.
	pprof.Do(caches, pprof.Labels("owner", t.Name()), func(caches context.Context) {
		var err error
		connection, err = registry.Connect(syncTarget, kubeconfigAt(t, target, proxy.URL()), kcp.Limits{})
		g.Expect(err).NotTo(HaveOccurred())
		suite.Eventually(t, func(g Gomega) { g.Expect(connection.Health.IsUp()).To(BeTrue()) })
		cached := connection.Watches.NewCache(namespacesResource, CacheOptions{Handler: cache.ResourceEventHandlerFuncs{}})
		go cached.Run(caches)
		g.Expect(cached.WaitForCacheSync(ctx)).To(BeTrue())
		waits := connection.Watches.NewCache(unserved, CacheOptions{Handler: cache.ResourceEventHandlerFuncs{}})
		go waits.Run(caches)
		suite.Eventually(t, func(g Gomega) { g.Expect(waits.Availability().Reason).To(Equal(ReasonNotServed)) })
		filtered := connection.Watches.NewFilteredCache(configMaps, FilteredCacheOptions{Scope: Scope{Namespaces: []string{"default", "kube-system"}}, Handler: cache.ResourceEventHandlerFuncs{}})
		go filtered.Run(caches)
		g.Expect(filtered.WaitForCacheSync(ctx)).To(BeTrue())
		recorded := make(chan types.NamespacedName, 1)
		taken := connection.Watches.NewNameWatch(configMaps, func(name types.NamespacedName) { recorded <- name })
		taken.Add(types.NamespacedName{Namespace: "default", Name: "free"})
		go taken.Run(caches)
		g.Eventually(recorded).Should(Receive())
		_, _, err = connection.APIs.Resolve(ctx, configMaps.GroupVersion().WithKind("ConfigMap"))
		g.Expect(err).NotTo(HaveOccurred())
		signalled := make(chan struct{}, 1)
		connection.Watches.Subscribe(Listener{OnNamespace: func(string, bool) {}, OnSynced: func() {
			select {
			case signalled <- struct{}{}:
			default:
			}
		}})
		g.Eventually(signalled).Should(Receive())
	})
	g.Expect(proxy.Open()).To(Equal(1))
	g.Expect(labelled(t)).To(BeNumerically(">", 5), "otherwise this test proves nothing")

	// The watch ends although the cache still runs.
	registry.Disconnect(syncTarget)
	g.Expect(registry.changes.Load()).To(BeEquivalentTo(2))
	_, ok := registry.Get(syncTarget)
	g.Expect(ok).To(BeFalse())
	suite.Eventually(t, func(g Gomega) { g.Expect(proxy.Open()).To(BeZero()) })

	// A caller that still holds the connection reaches nothing with it.
	opened := proxy.Opened()
	key := types.NamespacedName{Name: "default"}
	for name, err := range map[string]error{
		"get":    second(connection.Objects.Get(ctx, namespacesResource, key)),
		"create": second(connection.Objects.Create(ctx, configMaps, kinds[0].object("default", "too-late"))),
		"apply":  second(connection.Objects.Apply(ctx, configMaps, kinds[0].object("default", "too-late"), "uid")),
		"delete": connection.Objects.Delete(ctx, namespacesResource, key, "uid"),
		"ensure": second(connection.Objects.EnsureNamespace(ctx, "too-late", nil, nil)),
		"edit":   second(connection.Objects.PatchMetadata(ctx, namespacesResource, key, "uid", metadatapatch.Patch{})),
		"try":    connection.Objects.DryRunCreate(ctx, configMaps, kinds[0].object("default", "too-late")),
	} {
		g.Expect(err).To(HaveOccurred(), name)
	}
	g.Expect(proxy.Opened()).To(Equal(opened))

	// Nothing is started any more.
	defer connection.Watches.Subscribe(Listener{OnNamespace: func(string, bool) {}, OnCRD: func(schema.GroupResource) {}})()

	stopCaches()
	suite.Eventually(t, func(g Gomega) { g.Expect(labelled(t)).To(BeZero(), profile(t)) })
	g.Expect(proxy.Open()).To(BeZero())
	g.Expect(registry.changes.Load()).To(BeEquivalentTo(2))
}

func second[T any](_ T, err error) error { return err }

// labelled counts the goroutines that carry the test's label.
func labelled(t *testing.T) (count int) {
	t.Helper()
	group := 0
	lines := bufio.NewScanner(strings.NewReader(profile(t)))
	for lines.Scan() {
		// A group of equal goroutines begins with "<number> @ <addresses>"; its labels follow.
		if _, err := fmt.Sscanf(lines.Text(), "%d @", &group); err != nil && strings.HasPrefix(lines.Text(), "# labels:") && strings.Contains(lines.Text(), t.Name()) {
			count += group
		}
	}
	return count
}

func profile(t *testing.T) string {
	t.Helper()
	var text bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&text, 1); err != nil {
		t.Fatal(err)
	}
	return text.String()
}
