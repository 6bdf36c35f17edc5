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
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync/observe"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/policy"
)

// mailboxFacts implements [observe.Mailbox] with what the user may read in the mailbox.
type mailboxFacts explainer

// NamespaceLabels implements [observe.Mailbox].
func (f *mailboxFacts) NamespaceLabels(name string) (labels map[string]string, known bool) {
	namespace := f.facts.Namespace.Value
	if namespace == nil || namespace.GetName() != name {
		return nil, false
	}
	return namespace.GetLabels(), true
}

// PartOf implements [observe.Mailbox].
func (*mailboxFacts) PartOf(*unstructured.Unstructured) observe.Part { return observe.Whole }

// RequestWhole implements [observe.Mailbox].
func (*mailboxFacts) RequestWhole(*unstructured.Unstructured) error { return nil }

// targetFacts implements [observe.Target] with the one object that the user may read on the target.
type targetFacts explainer

// APIOf implements [observe.Target].
func (f *targetFacts) APIOf(kind schema.GroupKind) (plan.TargetAPI, error) {
	own := f.planner.Resource.TargetAPI()
	if own.Group == kind.Group && own.Kind == kind.Kind {
		return own, nil
	}
	// A conversion changes the kind. Only the target knows the resource of the new kind.
	converted := plan.TargetAPI{Kind: kind.Kind}
	converted.Group = kind.Group
	if names := f.selected.Conversion; names != nil {
		converted.Version = names.Downstream.Version
	}
	return converted, nil
}

// KindOf implements [observe.Target].
func (f *targetFacts) KindOf(resource schema.GroupResource) schema.GroupVersionKind {
	if own := f.planner.Resource.TargetAPI(); own.GroupResource() == resource {
		return own.GroupVersion().WithKind(own.Kind)
	}
	return schema.GroupVersionKind{}
}

// CheckKind implements [observe.Target].
func (*targetFacts) CheckKind(schema.GroupKind) error { return nil }

// CheckNamespace implements [observe.Target]. An option of the hub decides which namespaces are protected. Without its rules, a protected
// namespace is known only from its reports.
func (f *targetFacts) CheckNamespace(name string, protectedToo bool) error {
	namespaces := &policy.NamespacePolicy{Protected: policy.NamespacePatterns(f.facts.ProtectedNamespaces)}
	if bounds := f.facts.SyncTarget.Spec.Namespaces; bounds != nil {
		namespaces.Only, namespaces.Allowed = bounds.Only, policy.NamespacePatterns(bounds.AllowProtected)
	}
	if len(f.facts.ProtectedNamespaces) == 0 && (*explainer)(f).isReported(policy.ReasonNamespaceProtected) {
		namespaces.Protected = policy.DefaultProtectedNamespaces
	}
	return namespaces.Check(name, protectedToo)
}

// CheckProtected implements [observe.Target].
func (*targetFacts) CheckProtected(string, bool) error { return nil }

// NamespaceLabels implements [observe.Target].
func (*targetFacts) NamespaceLabels(string) (labels map[string]string, known bool) { return nil, false }

// CopiesOf implements [observe.Target].
func (f *targetFacts) CopiesOf(source types.NamespacedName) []plan.Copy {
	if f.observed == nil {
		return nil
	}
	from, group := f.observed.Mark.Source, f.planner.Resource.GroupResource()
	if from.Group != group.Group || from.Resource != group.Resource || from.Namespace != source.Namespace || from.Name != source.Name {
		return nil
	}
	return []plan.Copy{f.CopyAt(f.targetRef.TargetAPI, f.targetRef.NamespacedName)}
}

// CopyAt implements [observe.Target].
func (f *targetFacts) CopyAt(api plan.TargetAPI, key types.NamespacedName) plan.Copy {
	place := plan.Copy{API: api, Key: key}
	if f.observed != nil && key == f.targetRef.NamespacedName && api.GroupResource() == f.targetRef.GroupResource() {
		place.Object, place.Observed = f.facts.Target.Value, f.observed
	}
	return place
}

// isReported reports whether the status of a config has the reason.
func (e *explainer) isReported(reason string) bool {
	return slices.ContainsFunc(e.reports(), func(reported report) bool {
		ready := meta.FindStatusCondition(reported.Conditions, edgev2alpha1.ConditionReady)
		return ready != nil && ready.Reason == reason || slices.ContainsFunc(reported.Failures, func(failure edgev2alpha1.ObjectFailure) bool {
			return failure.Reason == reason
		})
	})
}
