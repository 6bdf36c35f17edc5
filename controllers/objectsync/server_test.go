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
	"fmt"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/test/framework/connections"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// put applies manifests as another client than the hub.
func put(t testing.TB, manifest string) {
	t.Helper()
	suite.Apply(t, suite.Target(t).Config, manifest)
}

// runs counts the calls of unique.
var runs atomic.Int64

// unique returns a name that no test, and no run of one, has used.
func unique(name string) string { return fmt.Sprintf("%s-%d", name, runs.Add(1)) }

// administrator returns a client with other credentials than the hub's.
func administrator(t testing.TB) dynamic.Interface {
	t.Helper()
	return suite.Dynamic(t, suite.Target(t).Config)
}

// connect returns the hub's connection to the cluster, once it is up.
func connect(t testing.TB) *targets.Connection {
	t.Helper()
	return connections.ConnectToTarget(t, testFieldManager, testOwner.SyncTarget)
}

// targetHarness writes objects of one resource to a target.
type targetHarness struct {
	*targetWriter
	planner plan.Planner
	t       *testing.T
	target  *targetResource
}

func newTargetHarness(t *testing.T, connection *targets.Connection, resource schema.GroupVersionResource, kind string, policies plan.Resource) *targetHarness {
	policies.GroupVersionResource, policies.Kind = resource, kind
	options := &Options{Resource: policies, Owner: testOwner, Mailbox: "mailbox", Connection: connection, OnChange: func() {}, Clock: clock.RealClock{}}
	writer := newTargetWriter(options, newTargetView(options), nil, nil)
	writer.fieldManager = testFieldManager
	return &targetHarness{
		writer,
		plan.Planner{Resource: policies, Down: transform.Down{Owner: testOwner, Mailbox: "mailbox", Resource: resource.GroupResource(), Hasher: ownership.NewHasher([]byte("key"))}},
		t, &targetResource{TargetAPI: plan.TargetAPI{GroupVersionResource: resource, Kind: kind}},
	}
}

// observeTarget returns the place of an object with the facts for decisions.
func (h *targetHarness) observeTarget(object *unstructured.Unstructured) plan.Copy {
	here := plan.Copy{API: h.target.TargetAPI, Key: keyOf(object), Object: object}
	here.Observed, _ = h.view.observeObject(object)
	return here
}

// applySource writes the source to the target as if the hub had no copy in its cache.
func (h *targetHarness) applySource(source *unstructured.Unstructured, policy ownership.Policy) error {
	h.t.Helper()
	desired := h.desired(source, policy)
	return h.create(h.t.Context(), plan.Copy{API: h.target.TargetAPI, Key: keyOf(desired.Object)}, desired)
}

// desired returns the desired object for a source in the mailbox.
func (h *targetHarness) desired(source *unstructured.Unstructured, policy ownership.Policy) *transform.Desired {
	h.t.Helper()
	desired, err := h.planner.Down.Desired(source, transform.SyncSpec{Policy: policy})
	if err != nil {
		h.t.Fatal(err)
	}
	return desired
}

// get reads an object from the target.
func (h *targetHarness) get(object *unstructured.Unstructured) *unstructured.Unstructured {
	h.t.Helper()
	found, err := h.objects.Get(h.t.Context(), h.resource.GroupVersionResource, keyOf(object))
	if err != nil {
		h.t.Fatal(err)
	}
	return found
}
