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

package explain

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync/observe"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
)

// Observed is the result of a read.
type Observed[T any] struct {
	// Value is the result, or the zero value if nothing exists.
	Value T
	// Err is the reason why the result is unknown.
	Err error
}

// Facts are all inputs of Explain.
type Facts struct {
	Now        time.Time
	SyncTarget *edgev2alpha1.SyncTarget
	// Hub is the UID of the provider workspace's LogicalCluster. If it is empty, it is taken from marks.
	Hub types.UID
	// ProtectedNamespaces are the hub's. If there are none, only its reports show them.
	ProtectedNamespaces []string

	// Resource and Key name the object in the mailbox.
	Resource schema.GroupResource
	Key      types.NamespacedName
	// Served is the API as the mailbox serves it, or nil if the mailbox does not serve it. Its fields Native and
	// Exported are ignored.
	Served Observed[*publishedresource.API]
	// Published are all PublishedResources. With an error, there may be more.
	Published Observed[[]synchubv1alpha1.PublishedResource]
	// Configs of the mailbox.
	Configs Observed[Configs]
	// Object and Namespace are in the mailbox. They are nil if they do not exist.
	Object, Namespace Observed[*unstructured.Unstructured]
	// Events about the object in the mailbox, as far as the user may read them.
	Events []corev1.Event
	// Target is the object at [Facts.TargetRef] on the target, or nil.
	Target Observed[*unstructured.Unstructured]
}

// Configs select objects in a mailbox.
type Configs struct {
	SyncerConfigs   []*edgev2alpha1.SyncerConfig
	EdgeSyncConfigs []*edgev2alpha1.EdgeSyncConfig
}

// TargetRef is the location of an object on the target.
type TargetRef struct {
	plan.TargetAPI
	types.NamespacedName
}

// displayName returns the name of the object on the target.
func (r TargetRef) displayName() string { return strings.TrimPrefix(r.String(), "/") }

// API returns the mailbox's resource, in the synced version if that is known.
func (f *Facts) API() schema.GroupVersionResource {
	return newObservation(f).resource().GroupVersionResource
}

// TargetRef returns the location of the object on the target. The error is the reason why the location is unknown. The result
// may lack the version, and either the resource name or the kind.
func (f *Facts) TargetRef() (TargetRef, error) {
	o := newObservation(f)
	return o.ref, o.refErr
}

// mailboxReader implements [observe.Mailbox] with what the user may read in the mailbox.
type mailboxReader struct{ *Facts }

// NamespaceLabels implements [observe.Mailbox].
func (r mailboxReader) NamespaceLabels(name string) (labels map[string]string, known bool) {
	namespace := r.Namespace.Value
	if namespace == nil || namespace.GetName() != name {
		return nil, false
	}
	return namespace.GetLabels(), true
}

// PartOf implements [observe.Mailbox].
func (mailboxReader) PartOf(*unstructured.Unstructured) observe.Part { return observe.Whole }

// LimitError implements [observe.Mailbox].
func (mailboxReader) LimitError(*unstructured.Unstructured) error { return nil }

// targetReader implements [observe.Target] with the one object that the user may read on the target.
type targetReader struct{ *observation }

// APIOf implements [observe.Target].
func (r targetReader) APIOf(kind schema.GroupKind) (plan.TargetAPI, error) {
	own := r.resource().TargetAPI()
	if own.Group == kind.Group && own.Kind == kind.Kind {
		return own, nil
	}
	// A conversion changes the kind. Only the target knows the resource of the new kind.
	converted := plan.TargetAPI{Kind: kind.Kind}
	converted.Group = kind.Group
	if names := r.selected.Conversion; names != nil {
		converted.Version = names.Downstream.Version
	}
	return converted, nil
}

// KindOf implements [observe.Target].
func (r targetReader) KindOf(resource schema.GroupResource) schema.GroupVersionKind {
	if own := r.resource().TargetAPI(); own.GroupResource() == resource {
		return own.GroupVersion().WithKind(own.Kind)
	}
	return schema.GroupVersionKind{}
}

// CheckKind implements [observe.Target].
func (targetReader) CheckKind(schema.GroupKind) error { return nil }

// CheckNamespace implements [observe.Target].
func (r targetReader) CheckNamespace(name string, protectedToo bool) error {
	namespaces := &policy.NamespacePolicy{Protected: policy.NamespacePatterns(r.ProtectedNamespaces)}
	if bounds := r.SyncTarget.Spec.Namespaces; bounds != nil {
		namespaces.Only, namespaces.Allowed = bounds.Only, policy.NamespacePatterns(bounds.AllowProtected)
	}
	return namespaces.Check(name, protectedToo)
}

// CheckProtected implements [observe.Target].
func (targetReader) CheckProtected(string, bool) error { return nil }

// NamespaceLabels implements [observe.Target].
func (targetReader) NamespaceLabels(string) (labels map[string]string, known bool) { return nil, false }

// CopiesOf implements [observe.Target].
func (r targetReader) CopiesOf(source types.NamespacedName) []plan.Copy {
	if r.copied == nil {
		return nil
	}
	from, resource := r.copied.Mark.Source, r.resource()
	if from.Group != resource.Group || from.Resource != resource.Resource || from.Namespace != source.Namespace || from.Name != source.Name {
		return nil
	}
	return []plan.Copy{r.CopyAt(r.ref.TargetAPI, r.ref.NamespacedName)}
}

// CopyAt implements [observe.Target].
func (r targetReader) CopyAt(api plan.TargetAPI, key types.NamespacedName) plan.Copy {
	place := plan.Copy{API: api, Key: key}
	if r.copied != nil && place.Ref() == r.ref.Ref(r.ref.NamespacedName) {
		place.Object, place.Observed = r.Target.Value, r.copied
	}
	return place
}
