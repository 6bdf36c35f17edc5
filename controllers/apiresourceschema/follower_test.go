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

package apiresourceschema_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/apiresourceschema"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
	"github.com/synchub-dev/synchub/controllers/syncmanager/crd"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/connections"
	"github.com/synchub-dev/synchub/test/framework/suite"
	"github.com/synchub-dev/synchub/test/tier"
)

// follower is a replica that does not lead until elected is closed.
type follower struct {
	installations
	elected chan struct{}
	// wanted receives the SyncTargets to connect to.
	wanted chan types.UID
	*recorder
	*replica
}

// startFollower starts a replica of a hub, which runs until the test ends. It connects to no SyncTarget by itself.
func (w *testEnv) startFollower(t *testing.T, hub types.UID) *follower {
	t.Helper()
	f := &follower{elected: make(chan struct{}), wanted: make(chan types.UID, 1), recorder: &recorder{}}
	var err error
	if f.replica, err = w.newReplica(&f.installations); err != nil {
		t.Fatal(err)
	}
	f.Hub.UID, f.Elected, f.Recorder = hub, f.elected, f.recorder
	f.Hosting = recordingClient{f.Hosting, f.recorder}
	f.Provider = recordingCluster{f.Provider, recordingClient{f.Provider.GetClient(), f.recorder}}
	f.sources.Connect = func(syncTarget types.UID) {
		select {
		case f.wanted <- syncTarget:
		default:
		}
	}
	if err := f.register(); err != nil {
		t.Fatal(err)
	}
	framework.RunInTest(t, f.manager.Start)
	return f
}

// recorder records each write, and each event.
type recorder struct {
	lock   sync.Mutex
	writes []string
}

func (r *recorder) record(format string, args ...any) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.writes = append(r.writes, fmt.Sprintf(format, args...))
}

func (r *recorder) recorded() []string {
	r.lock.Lock()
	defer r.lock.Unlock()
	return append([]string(nil), r.writes...)
}

// Eventf implements events.EventRecorder.
func (r *recorder) Eventf(_, _ runtime.Object, _, reason, _, _ string, _ ...any) {
	r.record("event %s", reason)
}

// recordingClient records each write.
type recordingClient struct {
	client.Client
	recorder *recorder
}

func (c recordingClient) record(verb string, object client.Object) {
	c.recorder.record("%s %s", verb, strings.TrimPrefix(fmt.Sprintf("%T", object), "*v1alpha1."))
}

func (c recordingClient) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	c.record("create", object)
	return c.Client.Create(ctx, object, options...)
}

func (c recordingClient) Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error {
	c.record("update", object)
	return c.Client.Update(ctx, object, options...)
}

func (c recordingClient) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	c.record("patch", object)
	return c.Client.Patch(ctx, object, patch, options...)
}

func (c recordingClient) Apply(ctx context.Context, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
	c.recorder.record("apply %T", object)
	return c.Client.Apply(ctx, object, options...)
}

func (c recordingClient) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	c.record("delete", object)
	return c.Client.Delete(ctx, object, options...)
}

func (c recordingClient) DeleteAllOf(ctx context.Context, object client.Object, options ...client.DeleteAllOfOption) error {
	c.record("delete all", object)
	return c.Client.DeleteAllOf(ctx, object, options...)
}

// Status records the call, because the controller does not read through a status writer.
func (c recordingClient) Status() client.SubResourceWriter {
	c.recorder.record("status")
	return c.Client.Status()
}

// SubResource records the call as well.
func (c recordingClient) SubResource(name string) client.SubResourceClient {
	c.recorder.record("subresource %s", name)
	return c.Client.SubResource(name)
}

type recordingCluster struct {
	cluster.Cluster
	client client.Client
}

func (c recordingCluster) GetClient() client.Client { return c.client }

// fieldsOf returns the fields of the spec in the first version of a CRD to install.
func fieldsOf(g Gomega, found *crd.Installation) any {
	g.Expect(found).NotTo(BeNil())
	return found.CRD.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties
}

// A replica that is not the leader finds the same CRDs to install as the leader, over its own connection, and
// writes nothing.
func TestReplicaThatDoesNotLead(t *testing.T) {
	tier.Thorough(t)
	w := sharedTestEnv(t)
	f := w.startFollower(t, "this-hub")
	const group = "followed.example.com"
	apply := func(field string) {
		w.apply(t, hosting, definition("hosting."+group, field))
		w.apply(t, hosting, configMap("followed", "crd.yaml", definition("written."+group, field)))
		w.apply(t, florin, definition(group, field))
	}
	apply("first")
	first := map[string]string{}
	for name, from := range map[string]struct{ group, source string }{
		"followed-hosting":   {"hosting." + group, "hostingCluster: {}"},
		"followed-configmap": {"written." + group, "configMap: {name: followed}"},
		"followed-target":    {group, "syncTarget: {cluster: '" + inventoryPath + "', name: " + florin + "}"},
	} {
		w.publish(t, name, "{resource: {group: "+from.group+", resource: gadgets, version: v1}, installCRD: true, api: {schemaFrom: {"+from.source+"}}}")
		first[name] = w.becomes(t, name, apiresourceschema.ReasonCreated, "")
	}
	// This one is of an API that can be installed, but need not be.
	w.publish(t, "followed-none", "{resource: {group: hosting."+group+", resource: gadgets}}")
	w.becomes(t, "followed-none", apiresourceschema.ReasonCreated, "")
	suite.Eventually(t, func(g Gomega) { g.Expect(f.wanted).To(Receive(Equal(w.florin)), "a connection of its own") })
	if f.installed("followed-target") != nil {
		t.Error("the follower has read a cluster without a connection")
	}
	connections.Connect(t, f.registry, w.florin, suite.ReadFile(t, w.Targets[florin].Kubeconfig), kcp.Limits{})
	bothFind := func(field string) {
		t.Helper()
		for name := range first {
			suite.Eventually(t, func(g Gomega) {
				wanted, found := w.installed(name), f.installed(name)
				g.Expect(fieldsOf(g, found)).To(HaveKey(field), name)
				g.Expect(apiequality.Semantic.DeepEqual(wanted, found)).To(BeTrue(), "%s: %v and %v", name, wanted, found)
			})
		}
	}
	bothFind("first")
	apply("second")
	bothFind("second")
	for name, schema := range first {
		w.changes(t, name, schema)
	}

	// The leader reports that the cluster is down. Both replicas keep the CRD.
	if err := w.Targets[florin].Kill9(); err != nil {
		t.Fatal(err)
	}
	w.becomes(t, "followed-target", apiresourceschema.ReasonSourceUnreachable, "stays in force.")
	bothFind("second")
	if err := w.Targets[florin].Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.becomes(t, "followed-target", apiresourceschema.ReasonCreated, "")

	// A PublishedResource of another hub, or a deleted one, has no CRD to install.
	w.setHub(t, "followed-hosting", &synchubv1alpha1.HubReference{UID: "other-hub", Workspace: "root:other"})
	w.hasEvent(t, "followed-hosting", publishedresource.ReasonAnotherHub)
	if err := w.hosting.Delete(t.Context(), w.get(NewWithT(t), t, "followed-target")); err != nil {
		t.Fatal(err)
	}
	suite.Eventually(t, func(g Gomega) {
		g.Expect(f.installed("followed-hosting")).To(BeNil())
		g.Expect(f.installed("followed-target")).To(BeNil())
	})
	g := NewWithT(t)
	g.Expect(f.installed("followed-none")).To(BeNil())
	g.Expect(f.recorded()).To(BeEmpty(), "the leader writes")
}

// A replica that is elected continues the work of the previous leader.
func TestReplicaThatIsElected(t *testing.T) {
	tier.Thorough(t)
	w := sharedTestEnv(t)
	const group, name = "elected.example.com", "elected"
	w.apply(t, hosting, definition(group, "first"))
	w.publish(t, name, "{resource: {group: "+group+", resource: gadgets}, installCRD: true}")
	first := w.becomes(t, name, apiresourceschema.ReasonCreated, "")
	// No replica of this hub leads from here on.
	f := w.startFollower(t, "next-hub")
	w.setHub(t, name, &synchubv1alpha1.HubReference{UID: "next-hub", Workspace: "root:provider"})
	suite.Eventually(t, func(g Gomega) { g.Expect(fieldsOf(g, f.installed(name))).To(HaveKey("first")) })
	w.apply(t, hosting, definition(group, "second"))
	suite.Eventually(t, func(g Gomega) { g.Expect(fieldsOf(g, f.installed(name))).To(HaveKey("second")) })
	g := NewWithT(t)
	g.Expect(f.recorded()).To(BeEmpty(), "the replica is not elected")
	g.Expect(w.get(g, t, name).Status.SchemaName).To(Equal(first))

	close(f.elected)
	w.schemaNamed(t, w.changes(t, name, first))
	suite.Eventually(t, func(g Gomega) {
		g.Expect(f.recorded()).To(ContainElements("create APIResourceSchema", "status", "event "+apiresourceschema.ReasonSchemaChanged))
	})
}
