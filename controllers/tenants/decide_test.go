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

package tenants

import (
	"encoding/json"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/test/fixtures"
)

var (
	testOwner  = ownership.Owner{Hub: "hub", SyncTarget: "florin", Sealer: ownership.NewSealer([]byte("key"))}
	testHasher = ownership.NewHasher([]byte("key"))
)

// desired returns the sealed object of a kind, and its hash.
func desired(t *testing.T, kind kind, tenancy string) (*unstructured.Unstructured, string) {
	t.Helper()
	of := fixtures.Decode[edgev2alpha1.Tenancy](t, tenancy)
	object, err := settingsOf(&of).namespacedObject(kind, "shop-1", "hash")
	if err != nil {
		t.Fatal(err)
	}
	hash, err := seal(object, testOwner, testHasher)
	if err != nil {
		t.Fatal(err)
	}
	return object, hash
}

// stored returns an object as the cluster stores it after the hub has applied it.
func stored(t *testing.T, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	object = object.DeepCopy()
	fields, err := json.Marshal(fieldsOf(object.Object))
	if err != nil {
		t.Fatal(err)
	}
	object.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: ownership.FieldManager(testOwner.Hub), Operation: metav1.ManagedFieldsOperationApply, APIVersion: object.GetAPIVersion(),
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(fields)),
	}})
	object.SetUID("uid")
	return object
}

// fieldsOf returns all fields of a value in the format of managedFields. Lists are atomic.
func fieldsOf(value map[string]any) map[string]any {
	fields := map[string]any{}
	for key, value := range value {
		if key == "apiVersion" || key == "kind" || key == "name" || key == "namespace" {
			continue
		}
		below, _ := value.(map[string]any)
		fields["f:"+key] = fieldsOf(below)
	}
	return fields
}

func TestDecide(t *testing.T) {
	const (
		withRole  = "{namespaces: PerWorkspace, identity: Workspace, role: edit}"
		withAdmin = "{namespaces: PerWorkspace, identity: Workspace, role: admin}"
		small     = "{namespaces: PerWorkspace, resourceQuota: {hard: {pods: '1'}}}"
		large     = "{namespaces: PerWorkspace, resourceQuota: {hard: {pods: '2'}}}"
	)
	quota, quotaHash := desired(t, resourceQuotas, large)
	former, _ := desired(t, resourceQuotas, small)
	binding, bindingHash := desired(t, roleBindings, withRole)
	formerBinding, _ := desired(t, roleBindings, withAdmin)
	changed := func(object *unstructured.Unstructured, change func(*unstructured.Unstructured)) *unstructured.Unstructured {
		object = stored(t, object)
		change(object)
		return object
	}
	now := metav1.NewTime(time.Unix(1000, 0))
	terminating := func(o *unstructured.Unstructured) { o.SetDeletionTimestamp(&now) }
	unmarked := func(o *unstructured.Unstructured) { o.SetAnnotations(nil) }
	for name, test := range map[string]struct {
		desired  *unstructured.Unstructured
		hash     string
		observed *unstructured.Unstructured
		want     action
	}{
		"nothing":                   {nil, "", nil, actionNone},
		"missing":                   {quota, quotaHash, nil, actionCreate},
		"in sync":                   {quota, quotaHash, stored(t, quota), actionNone},
		"another setting":           {quota, quotaHash, stored(t, former), actionApply},
		"another ClusterRole":       {binding, bindingHash, stored(t, formerBinding), actionReplace},
		"changed by another client": {quota, quotaHash, changed(quota, func(o *unstructured.Unstructured) { o.SetManagedFields(nil) }), actionRepair},
		"somebody else's":           {quota, quotaHash, changed(quota, unmarked), actionConflict},
		"terminating":               {quota, quotaHash, changed(quota, terminating), actionWait},
		"not needed":                {nil, "", stored(t, quota), actionDelete},
		"not needed, terminating":   {nil, "", changed(quota, terminating), actionNone},
		"not needed, not the hub's": {nil, "", changed(quota, unmarked), actionNone},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := decide(test.desired, test.hash, test.observed, testOwner); got != test.want || err != nil {
				t.Errorf("want %s, got %s, %v", test.want, got, err)
			}
		})
	}
}

// A mark of a copy that the hub downsynced does not make an object one of this package.
func TestIsOwned(t *testing.T) {
	self := ownership.Self{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding", Namespace: "shop-1", Name: ObjectName}
	mark := ownership.Mark{
		Version: ownership.MarkVersion, Hub: testOwner.Hub, SyncTarget: testOwner.SyncTarget, Self: self,
		Source: ownership.Source{Group: edgev2alpha1.GroupName, Resource: syncTargets},
	}
	for resource, want := range map[string]bool{syncTargets: true, "rolebindings": false} {
		mark.Source.Resource = resource
		if got := IsOwned(testOwner, map[string]string{ownership.MarkAnnotation: testOwner.Seal(mark)}, self); got != want {
			t.Errorf("a mark with the source %s: %v", resource, got)
		}
	}
}

func TestSettings(t *testing.T) {
	for text, want := range map[string][]kind{
		"{}": nil,
		"{namespaces: Shared, resourceQuota: {}}":                                  nil,
		"{namespaces: PerWorkspace}":                                               nil,
		"{namespaces: PerWorkspace, identity: Workspace, role: edit}":              {serviceAccounts, roleBindings},
		"{namespaces: PerWorkspace, resourceQuota: {hard: {}}, limitRange: {}}":    {resourceQuotas, limitRanges},
		"{namespaces: PerWorkspace, identity: Hub, role: edit, resourceQuota: {}}": {resourceQuotas},
	} {
		of := fixtures.Decode[edgev2alpha1.Tenancy](t, text)
		settings := settingsOf(&of)
		for _, kind := range allKinds {
			needed := false
			for _, one := range want {
				needed = needed || one == kind
			}
			if got := settings.needs(kind); got != needed {
				t.Errorf("%s: needs %s: %v", text, kind.Resource, got)
			}
		}
	}
}
