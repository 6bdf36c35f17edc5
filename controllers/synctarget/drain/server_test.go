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

package drain_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/cleanup"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/waves"
	"github.com/synchub-dev/synchub/controllers/synctarget/drain"
	"github.com/synchub-dev/synchub/test/framework/connections"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// countingTarget forwards to the target, records the writes, and cancels the run after some of them.
type countingTarget struct {
	drain.Target

	lock     sync.Mutex
	removed  []waves.Wave
	writes   int
	killAt   int
	kill     context.CancelFunc
	recorded bool
	early    []string
}

func (w *countingTarget) count(note func()) {
	w.lock.Lock()
	defer w.lock.Unlock()
	note()
	if w.writes++; w.writes == w.killAt {
		w.kill()
	}
}

func (w *countingTarget) Delete(ctx context.Context, resource schema.GroupVersionResource, key types.NamespacedName, uid types.UID) error {
	w.count(func() { w.removed = append(w.removed, waves.Of(resource.GroupResource())) })
	return w.Target.Delete(ctx, resource, key, uid)
}

func (w *countingTarget) RemoveMetadata(ctx context.Context, resource schema.GroupVersionResource, key types.NamespacedName, uid types.UID, labels, annotations []string) error {
	w.count(func() {
		if !w.recorded {
			w.early = append(w.early, key.String())
		}
	})
	return w.Target.RemoveMetadata(ctx, resource, key, uid, labels, annotations)
}

// testEnv holds the objects that a test creates on the cluster.
type testEnv struct {
	t      *testing.T
	client dynamic.Interface
	stamp  string
	owner  ownership.Owner
}

func newTestEnv(t *testing.T, stamp string, owner ownership.Owner) testEnv {
	t.Helper()
	return testEnv{t, suite.Dynamic(t, suite.Target(t).Config), stamp, owner}
}

func (w testEnv) object(apiVersion, kind, resource, namespace, name string, change func(*ownership.Mark)) *unstructured.Unstructured {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		w.t.Fatal(err)
	}
	mark := ownership.Mark{
		Version: ownership.MarkVersion, Hub: w.owner.Hub, SyncTarget: w.owner.SyncTarget, Mailbox: "mailbox", Policy: ownership.PolicyDelete,
		Source: ownership.Source{Group: gv.Group, Resource: resource, Namespace: namespace, Name: name, UID: "source"},
		Self:   ownership.Self{Group: gv.Group, Kind: kind, Namespace: namespace, Name: name},
	}
	if change != nil {
		change(&mark)
	}
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(apiVersion)
	object.SetKind(kind)
	object.SetNamespace(namespace)
	object.SetName(name)
	object.SetLabels(map[string]string{ownership.OwnerLabel: w.owner.LabelValue(), "app": w.stamp})
	object.SetAnnotations(map[string]string{ownership.MarkAnnotation: w.owner.Seal(mark), "note": "kept"})
	return object
}

func (w testEnv) create(resource schema.GroupVersionResource, object *unstructured.Unstructured) *unstructured.Unstructured {
	w.t.Helper()
	created, err := w.client.Resource(resource).Namespace(object.GetNamespace()).Create(w.t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return created
}

func (w testEnv) labelled(resource schema.GroupVersionResource, selector string) []unstructured.Unstructured {
	w.t.Helper()
	list, err := w.client.Resource(resource).List(w.t.Context(), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

// contents returns all objects of the test, the hub's and foreign ones.
func (w testEnv) contents() map[string]unstructured.Unstructured {
	w.t.Helper()
	found := map[string]unstructured.Unstructured{}
	for _, resource := range []schema.GroupVersionResource{configMaps, secrets, accounts, deployments, clusterRoles, namespaces} {
		for _, object := range w.labelled(resource, "app="+w.stamp) {
			found[resource.Resource+" "+object.GetName()] = object
		}
	}
	return found
}

var (
	owner = ownership.Owner{Hub: "hub", SyncTarget: "florin", Sealer: ownership.NewSealer([]byte("key"))}

	configMaps   = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	namespaces   = cleanup.Namespaces.WithVersion("v1")
	definitions  = cleanup.CRDs.WithVersion("v1")
	secrets      = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	accounts     = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	deployments  = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	clusterRoles = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
	gone         = schema.GroupVersionResource{Group: "gone.example.com", Version: "v1", Resource: "things"}
	recordedAll  = []schema.GroupVersionResource{namespaces, definitions, configMaps, secrets, accounts, deployments, clusterRoles, gone}
)

// populate creates some hundred objects of the hub on the cluster, and some foreign ones.
func (w testEnv) populate() (foreign map[string]string) {
	w.t.Helper()
	ns := w.stamp
	w.create(namespaces, w.object("v1", "Namespace", "namespaces", "", ns, nil))
	ensured := w.object("v1", "Namespace", "namespaces", "", ns+"-ensured", nil)
	ensured.SetLabels(nil)
	ensured.SetAnnotations(map[string]string{ownership.EnsuredAnnotation: w.owner.EnsuredValue(ownership.Self{Kind: "Namespace", Name: ensured.GetName()})})
	w.create(namespaces, ensured)
	for i := range 120 {
		w.create(configMaps, w.object("v1", "ConfigMap", "configmaps", ns, fmt.Sprintf("settings-%03d", i), nil))
	}
	for i := range 60 {
		w.create(secrets, w.object("v1", "Secret", "secrets", ns, fmt.Sprintf("key-%03d", i), nil))
	}
	for i := range 20 {
		w.create(accounts, w.object("v1", "ServiceAccount", "serviceaccounts", ns, fmt.Sprintf("account-%03d", i), nil))
		w.create(clusterRoles, w.object("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", "", fmt.Sprintf("%s-role-%03d", ns, i), nil))
		deployment := w.object("apps/v1", "Deployment", "deployments", ns, fmt.Sprintf("web-%03d", i), nil)
		deployment.Object["spec"] = map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
			"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
				"spec": map[string]any{"containers": []any{map[string]any{"name": "web", "image": "web"}}}},
		}
		w.create(deployments, deployment)
	}
	w.create(configMaps, w.object("v1", "ConfigMap", "configmaps", ns, "former", func(m *ownership.Mark) { m.Mailbox = "former" }))
	w.create(configMaps, w.object("v1", "ConfigMap", "configmaps", ns, "orphan", func(m *ownership.Mark) { m.Policy = ownership.PolicyOrphan }))
	w.create(configMaps, w.object("v1", "ConfigMap", "configmaps", ns, "once", func(m *ownership.Mark) { m.Policy = ownership.PolicyCreateOnly }))

	foreign = map[string]string{}
	plain := w.object("v1", "ConfigMap", "configmaps", ns, "plain", nil)
	plain.SetLabels(nil)
	plain.SetAnnotations(nil)
	for _, object := range []*unstructured.Unstructured{
		plain,
		w.object("v1", "ConfigMap", "configmaps", ns, "copied", func(m *ownership.Mark) { m.Self.Name = "settings-000" }),
		w.object("v1", "ConfigMap", "configmaps", ns, "others", func(m *ownership.Mark) { m.SyncTarget = "guilder" }),
		w.object("v1", "ConfigMap", "configmaps", ns, "later", func(m *ownership.Mark) { m.Version = ownership.MarkVersion + 1 }),
	} {
		created := w.create(configMaps, object)
		foreign[created.GetName()] = created.GetResourceVersion()
	}
	return foreign
}

// drain starts drains until one finishes, and cancels each after some writes.
func (w testEnv) drain(mode cleanup.Mode, writes int) (report edgev2alpha1.CleanupStatus, seen *countingTarget) {
	w.t.Helper()
	seen = &countingTarget{Target: drain.TargetOf(connections.ConnectToTarget(w.t, ownership.FieldManager(owner.Hub), owner.SyncTarget))}
	var before *edgev2alpha1.CleanupStatus
	for {
		ctx, kill := context.WithTimeout(w.t.Context(), suite.Timeout)
		seen.lock.Lock()
		seen.writes, seen.killAt, seen.kill, seen.recorded = 0, writes, kill, false
		seen.lock.Unlock()
		err := drain.Run(ctx, drain.Options{
			Target: seen, Owner: w.owner, Mode: mode, Resources: recordedAll, PreviousStatus: before,
			AllowsCascade: func(schema.GroupResource) bool { return false },
			StoreStatus: func(_ context.Context, next edgev2alpha1.CleanupStatus) error {
				seen.lock.Lock()
				defer seen.lock.Unlock()
				seen.recorded = true
				before = &next
				return nil
			},
			Clock: clock.RealClock{}, Log: logr.Discard(),
		})
		kill()
		switch {
		case err == nil:
			return *before, seen
		case !errors.Is(err, context.Canceled):
			w.t.Fatal(err)
		}
	}
}

func (w testEnv) expectForeign(foreign map[string]string) {
	w.t.Helper()
	for name, resourceVersion := range foreign {
		object, err := w.client.Resource(configMaps).Namespace(w.stamp).Get(w.t.Context(), name, metav1.GetOptions{})
		if err != nil || object.GetResourceVersion() != resourceVersion {
			w.t.Errorf("%s was touched: %v, %v", name, object, err)
		}
	}
}

func reasons(report edgev2alpha1.CleanupStatus, but string) map[string]string {
	found := map[string]string{}
	for _, left := range report.Left {
		if left.Reason != but {
			found[left.Resource+" "+left.Name] = left.Reason
		}
	}
	return found
}

func expectReasons(t *testing.T, got, want map[string]string) {
	t.Helper()
	for _, name := range slices.Concat(keysOf(got), keysOf(want)) {
		if got[name] != want[name] {
			t.Errorf("%s: want %q, got %q", name, want[name], got[name])
		}
	}
}

func keysOf(m map[string]string) (keys []string) {
	for key := range m {
		keys = append(keys, key)
	}
	return keys
}

// A drain that is cancelled again and again deletes the hub's objects in reverse order. It releases and lists
// the objects that must stay, and does not change any other object.
func TestDelete(t *testing.T) {
	w := newTestEnv(t, "delete", owner)
	foreign := w.populate()
	report, seen := w.drain(cleanup.ModeDelete, 47)

	if len(seen.early) > 0 {
		t.Errorf("released before it was reported: %v", seen.early)
	}
	if !slices.IsSortedFunc(seen.removed, func(a, b waves.Wave) int { return int(b - a) }) {
		t.Errorf("removed in the order %v", seen.removed)
	}
	for _, resource := range []schema.GroupVersionResource{secrets, accounts, deployments, clusterRoles, namespaces} {
		if left := w.labelled(resource, ownership.OwnerLabel+"="+w.owner.LabelValue()); len(left) > 0 {
			t.Errorf("%s: %d are left", resource.Resource, len(left))
		}
	}
	if left := w.labelled(configMaps, ownership.OwnerLabel+"="+w.owner.LabelValue()); len(left) != 3 {
		t.Errorf("%d ConfigMaps are left", len(left))
	}
	w.expectForeign(foreign)
	expectReasons(t, reasons(report, ""), map[string]string{
		"namespaces delete": cleanup.ReasonNotCascading, "namespaces delete-ensured": cleanup.ReasonEnsured,
		"configmaps orphan": cleanup.ReasonOrphaned, "configmaps once": cleanup.ReasonCreatedOnce, "configmaps later": cleanup.ReasonUnknownMark,
	})
	if report.Remaining == nil || *report.Remaining != 0 || report.Removed == 0 || report.LeftMore != 0 {
		t.Errorf("the report is %+v", report)
	}
	for _, name := range []string{"delete", "delete-ensured"} {
		object, err := w.client.Resource(namespaces).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || object.GetAnnotations()[ownership.MarkAnnotation] != "" || object.GetAnnotations()[ownership.EnsuredAnnotation] != "" {
			t.Errorf("%s: %v, %v", name, object, err)
		}
	}
}

// An orphaned object keeps everything but the marks.
func TestOrphan(t *testing.T) {
	w := newTestEnv(t, "orphan", ownership.Owner{Hub: owner.Hub, SyncTarget: "orphan", Sealer: owner.Sealer})
	foreign := w.populate()
	before := w.contents()
	report, seen := w.drain(cleanup.ModeOrphan, 91)
	if len(seen.removed) > 0 || len(seen.early) > 0 {
		t.Errorf("removed %v, released too early %v", seen.removed, seen.early)
	}
	w.expectForeign(foreign)
	after := w.contents()
	for name, object := range after {
		if _, isForeign := foreign[object.GetName()]; isForeign {
			continue
		}
		labels, annotations := object.GetLabels(), object.GetAnnotations()
		delete(labels, corev1.LabelMetadataName)
		if len(labels) != 1 || len(annotations) != 1 || annotations["note"] != "kept" {
			t.Errorf("%s: %v, %v", name, labels, annotations)
		}
		was := before[name]
		for _, changed := range []*unstructured.Unstructured{&was, &object} {
			delete(changed.Object, "metadata")
		}
		if !reflect.DeepEqual(was.Object, object.Object) {
			t.Errorf("%s: was %v, is %v", name, was.Object, object.Object)
		}
	}
	if len(after) != 247 {
		t.Errorf("%d objects exist", len(after))
	}
	// These are 244 objects of the hub, the ensured namespace, and the object that another version marked.
	if len(report.Left) != 100 || report.LeftMore != 146 || *report.Remaining != 0 {
		t.Errorf("%d are listed, %d more; %d remain", len(report.Left), report.LeftMore, *report.Remaining)
	}
}

// Objects that ModeDrain does not delete keep their marks.
func TestDrain(t *testing.T) {
	w := newTestEnv(t, "drain", ownership.Owner{Hub: owner.Hub, SyncTarget: "drain", Sealer: owner.Sealer})
	foreign := w.populate()
	report, _ := w.drain(cleanup.ModeDrain, 300)
	w.expectForeign(foreign)
	expectReasons(t, reasons(report, ""), map[string]string{
		"namespaces drain": cleanup.ReasonNotCascading, "namespaces drain-ensured": cleanup.ReasonEnsured,
		"configmaps orphan": cleanup.ReasonOrphaned, "configmaps once": cleanup.ReasonCreatedOnce, "configmaps later": cleanup.ReasonUnknownMark,
	})
	for resource, want := range map[schema.GroupVersionResource]int{configMaps: 5, secrets: 0, namespaces: 1} {
		if left := w.labelled(resource, ownership.OwnerLabel+"="+w.owner.LabelValue()); len(left) != want {
			t.Errorf("%s: want %d, got %d", resource.Resource, want, len(left))
		}
	}
}
