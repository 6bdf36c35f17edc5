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
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	gosync "sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/test/fixtures"
	"github.com/synchub-dev/synchub/test/framework/connections"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

var eventsResource = schema.GroupVersionResource{Version: "v1", Resource: "events"}

// theMailbox is the logical cluster of the only mailbox in these tests.
const theMailbox = "mailbox"

// fakeWorkspace is a fake of kcp, reduced to the requests of a hub with one mailbox: the endpoint slice with one endpoint, the
// binding, and the objects of all served resources. Like an API server, it handles versions, preconditions, finalizers and
// status.
type fakeWorkspace struct {
	t      testing.TB
	server *httptest.Server

	lock    gosync.Mutex
	changed *gosync.Cond
	version int
	// objects are the objects of each resource, by namespace and name; hidden are resources whose claim is rejected.
	objects map[schema.GroupVersionResource]map[types.NamespacedName]*unstructured.Unstructured
	hidden  map[schema.GroupVersionResource]bool
	// staleNames are the names of objects that lists and watches of all mailboxes omit, so that the hub's caches are outdated.
	staleNames map[string]bool
	events     []watchEvent
	// writes are the requests to change an object, as verb, resource and name.
	writes []string
	// bindingReadCount counts the single reads of the binding.
	bindingReadCount int
	// refuse may return an error for a write.
	refuse func(verb, name string) *metav1.Status
	closed bool
}

type watchEvent struct {
	resource schema.GroupVersionResource
	version  int
	kind     string
	object   *unstructured.Unstructured
}

var (
	apiBindings     = schema.GroupVersionResource{Group: "apis.kcp.io", Version: "v1alpha2", Resource: "apibindings"}
	logicalClusters = schema.GroupVersionResource{Group: "core.kcp.io", Version: "v1alpha1", Resource: "logicalclusters"}
	endpointSlices  = schema.GroupVersionResource{Group: "apis.kcp.io", Version: "v1alpha1", Resource: "apiexportendpointslices"}
)

// newFakeWorkspace starts a bound mailbox with these resources.
func newFakeWorkspace(t testing.TB, resources ...schema.GroupVersionResource) *fakeWorkspace {
	w := &fakeWorkspace{
		t: t, version: 100, hidden: map[schema.GroupVersionResource]bool{}, staleNames: map[string]bool{},
		objects: map[schema.GroupVersionResource]map[types.NamespacedName]*unstructured.Unstructured{},
		refuse:  func(string, string) *metav1.Status { return nil },
	}
	w.changed = gosync.NewCond(&w.lock)
	for _, resource := range append(resources, apiBindings, logicalClusters, endpointSlices, eventsResource) {
		w.objects[resource] = map[types.NamespacedName]*unstructured.Unstructured{}
	}
	w.server = httptest.NewTLSServer(http.HandlerFunc(w.serve))
	t.Cleanup(w.close)
	w.put(endpointSlices, "{apiVersion: apis.kcp.io/v1alpha1, kind: APIExportEndpointSlice, metadata: {name: export}, status: {endpoints: [{url: '"+w.server.URL+"/view'}]}}")
	w.put(logicalClusters, "{apiVersion: core.kcp.io/v1alpha1, kind: LogicalCluster, metadata: {name: cluster}, status: {phase: Ready}}")
	w.bind()
	return w
}

// close ends all watches before it closes the server, which waits for them.
func (w *fakeWorkspace) close() {
	w.lock.Lock()
	w.closed = true
	w.changed.Broadcast()
	w.lock.Unlock()
	w.server.CloseClientConnections()
	w.server.Close()
}

// access returns the hub's access to the fake.
func (w *fakeWorkspace) access() *kcp.ConfigProvider {
	w.t.Helper()
	return connections.KCP(w.t, suite.Kubeconfig(w.t, w.server.URL, suite.CertificateOf(w.server), "hub"))
}

// bind writes the binding with all resources except the hidden ones.
func (w *fakeWorkspace) bind() {
	w.lock.Lock()
	var bound []string
	for resource := range w.objects {
		if !w.hidden[resource] {
			bound = append(bound, fmt.Sprintf("{group: %q, resource: %s}", resource.Group, resource.Resource))
		}
	}
	w.lock.Unlock()
	slices.Sort(bound)
	w.put(apiBindings, "{apiVersion: apis.kcp.io/v1alpha2, kind: APIBinding, metadata: {name: bound}, status: {phase: Bound, boundResources: ["+strings.Join(bound, ", ")+"]}}")
}

// hide removes all objects of a resource from the watch, as if they were deleted. kcp does so when a claim is rejected. show
// restores them.
func (w *fakeWorkspace) hide(resource schema.GroupVersionResource) {
	w.lock.Lock()
	w.hidden[resource] = true
	for _, object := range w.objects[resource] {
		w.notify("DELETED", resource, object)
	}
	w.lock.Unlock()
	w.bind()
}

func (w *fakeWorkspace) show(resource schema.GroupVersionResource) {
	w.lock.Lock()
	delete(w.hidden, resource)
	for _, object := range w.objects[resource] {
		w.notify("ADDED", resource, object)
	}
	w.lock.Unlock()
	w.bind()
}

// showCurrent removes a name from staleNames, so that the hub's caches become current.
func (w *fakeWorkspace) showCurrent(resource schema.GroupVersionResource, name string) {
	w.lock.Lock()
	defer w.lock.Unlock()
	delete(w.staleNames, name)
	for _, object := range w.objects[resource] {
		if object.GetName() == name {
			w.notify("ADDED", resource, object)
		}
	}
}

// put applies a manifest as a user does. It keeps the metadata fields that the manifest does not have.
func (w *fakeWorkspace) put(resource schema.GroupVersionResource, manifest string) {
	w.t.Helper()
	object := fixtures.Object(w.t, manifest)
	w.lock.Lock()
	defer w.lock.Unlock()
	if before := w.objects[resource][keyOf(object)]; before != nil {
		after := before.DeepCopy()
		for field, value := range object.Object {
			if field != "metadata" {
				after.Object[field] = value
			}
		}
		labels, annotations := object.GetLabels(), before.GetAnnotations()
		after.SetLabels(labels)
		maps.Copy(annotations, object.GetAnnotations())
		after.SetAnnotations(annotations)
		w.store(resource, after)
		return
	}
	w.create(resource, object)
}

// create stores a new object. The caller holds the lock.
func (w *fakeWorkspace) create(resource schema.GroupVersionResource, object *unstructured.Unstructured) *unstructured.Unstructured {
	if object.GetUID() == "" {
		object.SetUID(types.UID(unique("uid")))
	}
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations["kcp.io/cluster"] = theMailbox
	object.SetAnnotations(annotations)
	object.SetCreationTimestamp(metav1.Unix(1_700_000_000, 0))
	object.SetGeneration(1)
	return w.store(resource, object)
}

// store gives an object a new version and publishes an event. It removes a terminating object without finalizers. The caller
// holds the lock.
func (w *fakeWorkspace) store(resource schema.GroupVersionResource, object *unstructured.Unstructured) *unstructured.Unstructured {
	key := keyOf(object)
	_, existed := w.objects[resource][key]
	if object.GetDeletionTimestamp() != nil && len(object.GetFinalizers()) == 0 {
		w.remove(resource, object)
		return object
	}
	w.version++
	object.SetResourceVersion(strconv.Itoa(w.version))
	w.objects[resource][key] = object
	kind := "ADDED"
	if existed {
		kind = "MODIFIED"
	}
	w.notify(kind, resource, object)
	return object
}

func (w *fakeWorkspace) remove(resource schema.GroupVersionResource, object *unstructured.Unstructured) {
	w.version++
	gone := object.DeepCopy()
	gone.SetResourceVersion(strconv.Itoa(w.version))
	delete(w.objects[resource], keyOf(object))
	w.notify("DELETED", resource, gone)
}

// notify is called with the lock held.
func (w *fakeWorkspace) notify(kind string, resource schema.GroupVersionResource, object *unstructured.Unstructured) {
	if (w.hidden[resource] || w.staleNames[object.GetName()]) && kind != "DELETED" {
		return
	}
	w.version++
	w.events = append(w.events, watchEvent{resource: resource, version: w.version, kind: kind, object: object.DeepCopy()})
	w.changed.Broadcast()
}

// drop deletes an object as a user does.
func (w *fakeWorkspace) drop(resource schema.GroupVersionResource, namespace, name string) {
	w.t.Helper()
	w.lock.Lock()
	defer w.lock.Unlock()
	object := w.objects[resource][types.NamespacedName{Namespace: namespace, Name: name}]
	if object == nil {
		w.t.Fatalf("there is no %s %s/%s", resource.Resource, namespace, name)
	}
	w.terminate(resource, object)
}

func (w *fakeWorkspace) terminate(resource schema.GroupVersionResource, object *unstructured.Unstructured) {
	if len(object.GetFinalizers()) == 0 {
		w.remove(resource, object)
		return
	}
	if object.GetDeletionTimestamp() == nil {
		after := object.DeepCopy()
		now := metav1.NewTime(time.Unix(1_700_000_100, 0))
		after.SetDeletionTimestamp(&now)
		w.store(resource, after)
	}
}

// refuseWrites sets the function whose errors the mailbox returns for writes.
func (w *fakeWorkspace) refuseWrites(refuse func(verb, name string) *metav1.Status) {
	w.locked(func() { w.refuse = refuse })
}

// locked calls a function while no request is handled.
func (w *fakeWorkspace) locked(do func()) {
	w.lock.Lock()
	defer w.lock.Unlock()
	do()
}

// get returns a copy of an object, or nil.
func (w *fakeWorkspace) get(resource schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	w.lock.Lock()
	defer w.lock.Unlock()
	if found := w.objects[resource][types.NamespacedName{Namespace: namespace, Name: name}]; found != nil {
		return found.DeepCopy()
	}
	return nil
}

// written returns the writes since the last call, without events.
func (w *fakeWorkspace) written() []string {
	w.lock.Lock()
	defer w.lock.Unlock()
	writes := w.writes
	w.writes = nil
	return writes
}

// bindingReads returns the number of reads of the binding since the last call. Each verification of an absence reads it.
func (w *fakeWorkspace) bindingReads() int {
	w.lock.Lock()
	defer w.lock.Unlock()
	count := w.bindingReadCount
	w.bindingReadCount = 0
	return count
}
