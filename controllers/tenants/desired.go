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
	"fmt"
	"slices"

	"github.com/kcp-dev/logicalcluster/v3"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/tenancy"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// ObjectName is the name of the objects in each namespace.
const ObjectName = "synchub-tenant"

// kind is one of the kinds of the objects.
type kind struct {
	schema.GroupVersionResource
	name string
}

func (k kind) groupVersionKind() schema.GroupVersionKind { return k.GroupVersion().WithKind(k.name) }

var (
	serviceAccounts = kind{corev1.SchemeGroupVersion.WithResource("serviceaccounts"), "ServiceAccount"}
	roleBindings    = kind{rbacv1.SchemeGroupVersion.WithResource("rolebindings"), "RoleBinding"}
	resourceQuotas  = kind{corev1.SchemeGroupVersion.WithResource("resourcequotas"), "ResourceQuota"}
	limitRanges     = kind{corev1.SchemeGroupVersion.WithResource("limitranges"), "LimitRange"}

	// namespacedKinds are the kinds of the objects in the namespaces of workspaces.
	namespacedKinds = []kind{roleBindings, resourceQuotas, limitRanges}
	allKinds        = append([]kind{serviceAccounts}, namespacedKinds...)
)

// Resources returns the resources of all objects, in the order in which to remove them.
func Resources() []schema.GroupVersionResource {
	var resources []schema.GroupVersionResource
	for _, kind := range namespacedKinds {
		resources = append(resources, kind.GroupVersionResource)
	}
	return append(resources, serviceAccounts.GroupVersionResource)
}

// ResourcesFor returns the names of the resources of the objects that a tenancy needs, sorted.
func ResourcesFor(of *edgev2alpha1.Tenancy) (names []string) {
	needed := settingsOf(of)
	for _, kind := range allKinds {
		if needed.needs(kind) {
			names = append(names, kind.Resource)
		}
	}
	slices.Sort(names)
	return names
}

// Selector returns the label selector for the objects of an owner.
func Selector(owner ownership.Owner) string {
	return ownership.InstalledByLabel + "=" + owner.LabelValue()
}

// settings are the settings of a SyncTarget for the objects.
type settings struct {
	tenancy.Settings
	tenancy.Identities
	role       string
	quota      *corev1.ResourceQuotaSpec
	limitRange *corev1.LimitRangeSpec
}

func settingsOf(of *edgev2alpha1.Tenancy) settings {
	s := settings{Settings: tenancy.SettingsOf(of), Identities: tenancy.IdentitiesOf(of)}
	if s.Naming.IsShared() {
		return settings{}
	}
	if s.Workspaces {
		s.role = of.Role
	}
	s.quota, s.limitRange = of.ResourceQuota, of.LimitRange
	return s
}

// namespaceLabels returns the labels of a workspace's namespace; nil if the workspaces share the namespaces.
func (s settings) namespaceLabels(workspace logicalcluster.Name) map[string]string {
	labels := s.Labels(nil)
	if labels != nil {
		labels[edgev2alpha1.LabelWorkspace] = tenancy.WorkspaceHash(workspace)
	}
	return labels
}

// needs reports whether the settings need objects of the kind.
func (s settings) needs(kind kind) bool {
	switch kind {
	case serviceAccounts:
		return s.Workspaces
	case roleBindings:
		return s.role != ""
	case resourceQuotas:
		return s.quota != nil
	case limitRanges:
		return s.limitRange != nil
	default:
		return false
	}
}

// namespacedObject returns the content of the object of a kind that the settings need in a namespace of a workspace.
func (s settings) namespacedObject(kind kind, namespace, workspaceHash string) (*unstructured.Unstructured, error) {
	object := newObject(kind, namespace, ObjectName, workspaceHash)
	switch kind {
	case roleBindings:
		object.Object["roleRef"] = map[string]any{"apiGroup": rbacv1.GroupName, "kind": "ClusterRole", "name": s.role}
		object.Object["subjects"] = []any{map[string]any{
			"kind": rbacv1.ServiceAccountKind, "namespace": edgev2alpha1.TenantsNamespace, "name": workspaceHash,
		}}
		return object, nil
	case resourceQuotas:
		return withSpec(object, s.quota)
	case limitRanges:
		return withSpec(object, s.limitRange)
	default:
		return nil, fmt.Errorf("%s is no kind of an object in a namespace", kind.name)
	}
}

func withSpec(object *unstructured.Unstructured, spec any) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spec)
	if err != nil {
		return nil, err
	}
	object.Object["spec"] = content
	return object, nil
}

func newObject(kind kind, namespace, name, workspaceHash string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(kind.groupVersionKind())
	object.SetNamespace(namespace)
	object.SetName(name)
	if workspaceHash != tenancy.MailboxAccount {
		object.SetLabels(map[string]string{edgev2alpha1.LabelWorkspace: workspaceHash})
	}
	return object
}

// seal adds the owner's mark to an object. The source in the mark is the SyncTarget.
func seal(object *unstructured.Unstructured, owner ownership.Owner, hasher ownership.Hasher) (hash string, err error) {
	if hash, err = hasher.Hash(object.Object); err != nil {
		return "", err
	}
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[ownership.InstalledByLabel] = owner.LabelValue()
	object.SetLabels(labels)
	object.SetAnnotations(map[string]string{ownership.MarkAnnotation: owner.Seal(ownership.Mark{
		Version: ownership.MarkVersion, Hub: owner.Hub, SyncTarget: owner.SyncTarget,
		Source: ownership.Source{Group: edgev2alpha1.GroupName, Resource: syncTargets, Name: string(owner.SyncTarget), UID: owner.SyncTarget},
		Self:   transform.SelfOf(object), Policy: ownership.PolicyDelete, Hash: hash,
	})})
	return hash, nil
}

// syncTargets is the resource of the source in the marks.
const syncTargets = "synctargets"
