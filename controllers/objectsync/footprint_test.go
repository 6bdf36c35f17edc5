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

package objectsync

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	gosync "sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/queue"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/test/framework/connections"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// These benchmarks measure the memory of an idle hub. The target is a kube-apiserver, the mailbox a fake:
//
//	go test ./controllers/objectsync -run '^$' -bench Footprint -benchtime 1x

var profiles = flag.String("profiles", "", "directory to which benchmarks of memory write profiles of the heap and of goroutines")

// footprint is the memory of the process in bytes, and its number of goroutines.
type footprint struct{ heap, stacks, goroutines float64 }

// measureFootprint waits until the number of goroutines is stable, and returns the footprint.
func measureFootprint(b *testing.B, name string) footprint {
	b.Helper()
	before, same := 0, 0
	suite.WaitUntil(b, "goroutines neither begin nor end", func() bool {
		if now := runtime.NumGoroutine(); now != before {
			before, same = now, 0
		}
		same++
		return same > 50
	})
	// The second collection frees pooled values. Each collection halves stacks that are too large.
	for range 8 {
		runtime.GC()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	if *profiles != "" {
		for _, kind := range []string{"heap", "goroutine"} {
			file, err := os.Create(filepath.Join(*profiles, name+"-"+kind+".pprof")) //nolint:gosec // the path is a flag of the test
			if err != nil {
				b.Fatal(err)
			}
			if err := errors.Join(pprof.Lookup(kind).WriteTo(file, 0), file.Close()); err != nil {
				b.Fatal(err)
			}
		}
	}
	return footprint{heap: float64(stats.HeapAlloc), stacks: float64(stats.StackInuse), goroutines: float64(before)}
}

// report reports the growth since another footprint, divided by count.
func (f footprint) report(b *testing.B, since footprint, count int, of string) {
	b.ReportMetric((f.heap-since.heap)/float64(count), "heap-B/"+of)
	b.ReportMetric((f.stacks-since.stacks)/float64(count), "stack-B/"+of)
	b.ReportMetric((f.goroutines-since.goroutines)/float64(count), "goroutines/"+of)
}

// bench is a hub for one mailbox and any number of targets.
type bench struct {
	*fakeWorkspace
	b         *testing.B
	mailboxes *mailboxes.Mailboxes
	registry  *targets.Registry
	// now is the time of the controllers.
	now     *testclock.FakeClock
	ctx     context.Context //nolint:containedctx // what was started ends with it
	running *gosync.WaitGroup
}

func newBench(b *testing.B, resources ...schema.GroupVersionResource) *bench {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	h := &bench{fakeWorkspace: newFakeWorkspace(b, append(resources, namespaces)...), b: b, ctx: ctx, running: &gosync.WaitGroup{}, now: testclock.NewFakeClock(time.Unix(1_700_000_000, 0))}
	b.Cleanup(func() {
		cancel()
		h.running.Wait()
	})
	h.registry = connections.NewRegistry(b, targets.Options{FieldManager: testFieldManager})
	h.mailboxes = mailboxes.New(mailboxes.Options{
		Access: h.access(), Workspace: "root:synchub", Export: "export", Resources: append(resources, namespaces), Clock: clock.RealClock{}, Log: logr.Discard(),
	})
	return h
}

func (h *bench) run(run func(context.Context) error) {
	h.running.Go(func() {
		if err := run(h.ctx); err != nil {
			h.b.Error(err)
		}
	})
}

// open starts the watches of the mailbox, and waits until their caches have synced.
func (h *bench) open(resources ...schema.GroupVersionResource) {
	h.run(h.mailboxes.Start)
	suite.WaitUntil(h.b, "the mailbox is seen", func() bool {
		for _, resource := range append(resources, namespaces) {
			if _, known := h.mailboxes.List(resource, theMailbox); !known {
				return false
			}
		}
		return true
	})
}

// connect connects a target and waits for its watches of namespaces and CRDs. All targets are the same cluster.
func (h *bench) connect(target types.UID) *targets.Connection {
	h.b.Helper()
	connection := connections.Connect(h.b, h.registry, target, suite.ReadFile(h.b, suite.Target(h.b).Kubeconfig), kcp.Limits{})
	suite.WaitUntil(h.b, "the target is up", connection.Health.IsUp)
	synced := make(chan struct{}, 2)
	connection.Watches.Subscribe(targets.Listener{
		OnNamespace: func(string, bool) {}, OnCRD: func(schema.GroupResource) {}, OnSynced: func() { synced <- struct{}{} },
	})
	for range cap(synced) {
		<-synced
	}
	return connection
}

// control starts a controller.
func (h *bench) control(connection *targets.Connection, resource schema.GroupVersionResource, kind string, matcher *selection.Matcher) *Controller {
	h.b.Helper()
	synced := plan.Resource{
		PublishedResource: resource.Resource, GroupVersionResource: resource, Kind: kind, Namespaced: true, StatusReturn: true, StatusSubresource: true, Exported: true,
	}
	controller := New(Options{
		Resource: synced, TargetAPIs: []plan.TargetAPI{synced.TargetAPI()}, Mailbox: theMailbox, Mailboxes: h.mailboxes, Connection: connection,
		Owner:  ownership.Owner{Hub: testOwner.Hub, SyncTarget: connection.SyncTarget, Sealer: testOwner.Sealer},
		Hasher: ownership.NewHasher([]byte("key")), SyncTarget: "florin", OnChange: func() {}, Clock: h.now, Log: logr.Discard(),
	}, matcher)
	h.run(controller.Run)
	return controller
}

// BenchmarkFootprintOfIdlePairs measures a target's connection with its watches of namespaces and CRDs, and then each synced
// resource with its watch: just after work ("awake") and at rest ("idle"). About 5 KB of an idle pair are memory of ended
// goroutines, which Go keeps for new ones.
func BenchmarkFootprintOfIdlePairs(b *testing.B) {
	kinds := []string{"ConfigMap", "Secret", "Service", "ServiceAccount", "Pod", "ReplicationController", "LimitRange", "ResourceQuota", "PodTemplate", "PersistentVolumeClaim"}
	resources := []string{"configmaps", "secrets", "services", "serviceaccounts", "pods", "replicationcontrollers", "limitranges", "resourcequotas", "podtemplates", "persistentvolumeclaims"}
	for name, size := range map[string]struct{ targets, resources int }{
		"targets=60/resources=1": {60, 1}, "targets=12/resources=10": {12, 10},
	} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				var all []schema.GroupVersionResource
				for _, resource := range resources[:size.resources] {
					all = append(all, schema.GroupVersionResource{Version: "v1", Resource: resource})
				}
				h := newBench(b, all...)
				h.open(all...)
				label := fmt.Sprintf("%dx%d", size.targets, size.resources)
				base := measureFootprint(b, label+"-base")
				connections := make([]*targets.Connection, size.targets)
				for i := range connections {
					connections[i] = h.connect(types.UID(unique("target")))
				}
				connected := measureFootprint(b, label+"-connected")
				var controllers []*Controller
				for _, connection := range connections {
					for i, resource := range all {
						controllers = append(controllers, h.control(connection, resource, kinds[i], selection.Compile(nil, nil)))
					}
				}
				for _, controller := range controllers {
					<-controller.FirstPassDone()
				}
				for _, controller := range controllers {
					controller.enqueuer.enqueue(changePriority, types.NamespacedName{Namespace: "default", Name: "nothing"})
				}
				suite.WaitUntil(b, "all have worked", func() bool {
					return !slices.ContainsFunc(controllers, func(c *Controller) bool { return c.QueueLength() > 0 || c.activeReconciles.Load() > 0 })
				})
				awake := measureFootprint(b, label+"-awake")
				suite.WaitUntil(b, "all are at rest", func() bool {
					h.now.Step(idleTimeout)
					return !slices.ContainsFunc(controllers, func(c *Controller) bool {
						return !c.enqueuer.current().(*queue.Queue[types.NamespacedName]).IsIdle()
					})
				})
				resting := measureFootprint(b, label+"-resting")
				connected.report(b, base, len(connections), "target")
				awake.report(b, connected, len(controllers), "awake-pair")
				resting.report(b, connected, len(controllers), "idle-pair")
			}
		})
	}
}

// BenchmarkFootprintOfObjects measures the memory for each ConfigMap of 2 KB in sync: "above" is the cache of the mailbox,
// "below" the cache of the target with the state of its keys.
func BenchmarkFootprintOfObjects(b *testing.B) {
	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	const count = 5000
	for range b.N {
		h := newBench(b, configMaps)
		namespace := unique("weighed")
		h.put(namespaces, "{apiVersion: v1, kind: Namespace, metadata: {name: "+namespace+"}}")
		put(b, "{apiVersion: v1, kind: Namespace, metadata: {name: "+namespace+"}}")
		for i := range count {
			h.put(configMaps, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: object-%d, namespace: %s, labels: {app: florin, tier: back}}, data: {settings: %q, level: info}}", i, namespace, text(1600)))
		}
		connection := h.connect(types.UID(unique("target")))
		base := measureFootprint(b, "objects-base")
		h.open(configMaps)
		seen := measureFootprint(b, "objects-seen")
		controller := h.control(connection, configMaps, "ConfigMap", selecting("configmaps", namespace))
		<-controller.FirstPassDone()
		suite.WaitUntil(b, "all are there", func() bool { return controller.target.apis[0].cache.Len() == count })
		synced := measureFootprint(b, "objects-synced")
		seen.report(b, base, count, "above")
		synced.report(b, seen, count, "below")
		b.ReportMetric((synced.heap-base.heap)/count, "heap-B/object")
	}
}

// selecting compiles a config that selects all objects of a resource in a namespace.
func selecting(resource, namespace string) *selection.Matcher {
	config := &edgev2alpha1.SyncerConfig{}
	config.Spec.NamespaceScope = edgev2alpha1.NamespaceScopeDownsyncs{
		Namespaces: []string{namespace},
		Resources:  []edgev2alpha1.NamespaceScopeDownsyncResource{{GroupResource: edgev2alpha1.GroupResource{Resource: resource}, APIVersion: "v1"}},
	}
	return selection.Compile([]*edgev2alpha1.SyncerConfig{config}, nil)
}

// text returns a random text of that length.
func text(length int) string {
	text := ""
	for len(text) < length {
		text += rand.Text()
	}
	return text[:length]
}
