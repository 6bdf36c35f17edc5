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
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// targetNamespace is the namespace of a test on the target, seen by the target's administrator. The mailbox has a namespace of
// the same name.
type targetNamespace struct {
	t         testing.TB
	namespace string
	// owner is the owner of the hub's copies.
	owner ownership.Owner
}

// onTarget returns an object in the test's namespace of the target, or nil.
func (n *targetNamespace) onTarget(resource schema.GroupVersionResource, name string) *unstructured.Unstructured {
	n.t.Helper()
	return onTargetIn(n.t, resource, n.namespace, name)
}

// expectOnTarget waits until the target has a copy of the hub's that satisfies all checks.
func (n *targetNamespace) expectOnTarget(resource schema.GroupVersionResource, name string, right ...func(*unstructured.Unstructured) bool) *unstructured.Unstructured {
	n.t.Helper()
	var found *unstructured.Unstructured
	suite.WaitUntil(n.t, "the target has "+name, func() bool {
		found = n.onTarget(resource, name)
		return found != nil && n.isOwned(found) && !slices.ContainsFunc(right, func(is func(*unstructured.Unstructured) bool) bool { return !is(found) })
	})
	return found
}

func (n *targetNamespace) isOwned(object *unstructured.Unstructured) bool {
	return object.GetLabels()[ownership.OwnerLabel] == n.owner.LabelValue()
}

// expectGoneFromTarget waits until the target no longer has the object.
func (n *targetNamespace) expectGoneFromTarget(resource schema.GroupVersionResource, name string) {
	n.t.Helper()
	suite.WaitUntil(n.t, name+" is gone from the target", func() bool { return n.onTarget(resource, name) == nil })
}

// setMarkMailbox changes the mailbox in the mark of the target's ConfigMap.
func (n *targetNamespace) setMarkMailbox(name, mailbox string) {
	n.t.Helper()
	object := n.onTarget(configMapsV1, name)
	mark, err := ownership.ParseMark(object.GetAnnotations()[ownership.MarkAnnotation])
	if err != nil {
		n.t.Fatal(err)
	}
	mark.Mailbox = mailbox
	addMark(object, mark)
	if _, err := administrator(n.t).Resource(configMapsV1).Namespace(n.namespace).Update(n.t.Context(), object, metav1.UpdateOptions{}); err != nil {
		n.t.Fatal(err)
	}
}

// onTargetIn returns an object of the target, or nil.
func onTargetIn(t testing.TB, resource schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	found, err := administrator(t).Resource(resource).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		t.Fatal(err)
	}
	return found
}
