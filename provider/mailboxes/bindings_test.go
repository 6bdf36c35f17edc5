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

package mailboxes

import (
	"testing"

	"github.com/go-logr/logr"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestLists(t *testing.T) {
	binding := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{
		"boundResources":          []any{"odd", map[string]any{"group": "acme.io", "resource": "gizmos"}},
		"appliedPermissionClaims": []any{map[string]any{"resource": "configmaps"}},
		"conditions":              []any{map[string]any{"type": "BindingUpToDate", "status": "False", "reason": "NamingConflicts"}},
	}}}
	gizmos, configMaps := schema.GroupResource{Group: "acme.io", Resource: "gizmos"}, schema.GroupResource{Resource: "configmaps"}
	for _, test := range []struct {
		resource schema.GroupResource
		path     string
		want     bool
	}{
		{gizmos, "boundResources", true}, {gizmos, "appliedPermissionClaims", false}, {configMaps, "appliedPermissionClaims", true},
		{schema.GroupResource{Resource: "gizmos"}, "boundResources", false}, {schema.GroupResource{Group: "acme.io", Resource: "configmaps"}, "appliedPermissionClaims", false},
		{gizmos, "absent", false},
	} {
		if got := listsResource(binding, test.resource, "status", test.path); got != test.want {
			t.Errorf("lists(%s, %s) = %t", test.resource, test.path, got)
		}
	}
	if got := findCondition(binding, "BindingUpToDate"); got["reason"] != "NamingConflicts" {
		t.Errorf("conditionOf: %v", got)
	}
	if got := findCondition(binding, "Ready"); got["status"] != nil {
		t.Errorf("conditionOf: %v", got)
	}
}

func TestUnknownMailboxLacksNothing(t *testing.T) {
	boxes := New(Options{Workspace: "root:synchub", Export: "mailbox", Log: logr.Discard()})
	if conflict, known := boxes.NamingConflict("nowhere"); conflict != nil || known {
		t.Errorf("NamingConflict: %v, %t", conflict, known)
	}
	if boxes.IsKnownNotServed("nowhere", schema.GroupResource{Resource: "configmaps"}) {
		t.Error("an unknown mailbox is reported not to serve a resource")
	}
}

func TestListsClaims(t *testing.T) {
	claim := func(group, resource, identity string) apisv1alpha2.PermissionClaim {
		return apisv1alpha2.PermissionClaim{GroupResource: apisv1alpha2.GroupResource{Group: group, Resource: resource}, IdentityHash: identity}
	}
	binding := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"permissionClaims": []any{
		"odd",
		map[string]any{"resource": "configmaps", "state": "Accepted"},
		map[string]any{"resource": "secrets", "state": "Rejected"},
		map[string]any{"group": "acme.io", "resource": "gizmos", "identityHash": "a", "state": "Accepted"},
	}}}}
	for name, test := range map[string]struct {
		claims []apisv1alpha2.PermissionClaim
		want   bool
	}{
		"none":                {nil, true},
		"accepted":            {[]apisv1alpha2.PermissionClaim{claim("", "configmaps", ""), claim("acme.io", "gizmos", "a")}, true},
		"rejected":            {[]apisv1alpha2.PermissionClaim{claim("", "secrets", "")}, true},
		"one of two":          {[]apisv1alpha2.PermissionClaim{claim("", "configmaps", ""), claim("", "services", "")}, false},
		"of another group":    {[]apisv1alpha2.PermissionClaim{claim("acme.io", "configmaps", "")}, false},
		"of another identity": {[]apisv1alpha2.PermissionClaim{claim("acme.io", "gizmos", "b")}, false},
	} {
		if got := listsClaims(binding, test.claims); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
