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

package observe

import (
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/mutation"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
	"github.com/synchub-dev/synchub/controllers/plan/related"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// Mailbox reads the mailbox of a SyncTarget.
type Mailbox interface {
	// NamespaceLabels returns the labels of a namespace. known is false if the labels cannot be read now.
	NamespaceLabels(name string) (labels map[string]string, known bool)
	// PartOf returns how much of a mailbox object is known.
	PartOf(object *unstructured.Unstructured) Part
	// LimitError returns the limit that excludes the rest of a partly cached object; nil if the rest can be fetched.
	LimitError(object *unstructured.Unstructured) error
}

// Part is the part of a mailbox object that is known.
type Part int

const (
	// Whole: everything is known.
	Whole Part = iota
	// Metadata: only the metadata is known.
	Metadata
	// Identity: not even the labels are known.
	Identity
)

// Target reads the target of a SyncTarget.
type Target interface {
	// APIOf returns the target API of a kind that copies may have. The error is the reason why copies may not have the kind.
	APIOf(kind schema.GroupKind) (plan.TargetAPI, error)
	// KindOf returns the kind of a target resource that copies may have; zero for any other resource.
	KindOf(resource schema.GroupResource) schema.GroupVersionKind
	// CheckKind returns why the hub produces no objects of a kind, or nil. The kind of a former conversion may be unknown.
	CheckKind(kind schema.GroupKind) error
	// CheckNamespace returns why the hub does not use a namespace, or nil. It may use a protected one if protectedToo is true.
	CheckNamespace(name string, protectedToo bool) error
	// CheckProtected returns why the hub does not use a namespace of the mailbox because it is protected, or nil.
	CheckProtected(name string, protectedToo bool) error
	// NamespaceLabels returns the labels of a namespace. known is false if the labels cannot be read now.
	NamespaceLabels(name string) (labels map[string]string, known bool)
	// CopiesOf returns all copies of a mailbox object, under any name and kind.
	CopiesOf(source types.NamespacedName) []plan.Copy
	// CopyAt returns a place on the target, with the object there if it is a copy of the hub's.
	CopyAt(api plan.TargetAPI, key types.NamespacedName) plan.Copy
}

// Observer observes the objects of one published resource, in one mailbox and on one target. Create it with [New].
type Observer struct {
	Mailbox Mailbox
	Target  Target
	// Planner has the resource, and the rules that name objects.
	Planner *plan.Planner
	// Registry contains the claims of primaries on related objects.
	Registry *related.Registry
	// IsPublished reports whether a PublishedResource of this name is active.
	IsPublished func(publishedResource string) bool
	// SyncTargetInput returns the SyncTarget's fields as mutations read them.
	SyncTargetInput func() map[string]any
	// ReadsCopies is true if a mutation reads the values of copies. Then [Target] returns them.
	ReadsCopies bool

	// targetVersions are the versions that configs may name for objects on the target, if there are several.
	targetVersions []string
	targetResource schema.GroupResource
}

// New returns an observer, with its fields that depend only on the resource.
func New(o Observer) *Observer {
	o.targetResource = o.resource().TargetAPI().GroupResource()
	if o.resource().HasMultipleTargetVersions() {
		o.targetVersions = o.resource().TargetVersions()
	}
	return &o
}

func (o *Observer) resource() *plan.Resource { return &o.Planner.Resource }

var (
	// ErrNotReadable means that one side cannot be read now.
	ErrNotReadable = errors.New("the hub cannot read it now")
	// ErrPartialMatcher means that the object may be selected by an invalid entry, or by a config that is not active because the
	// mailbox has too many.
	ErrPartialMatcher = errors.New("it is unknown what all configs select")
	// ErrNotServed means that the target does not serve the API of the copy.
	ErrNotServed = errors.New("the target does not serve")
)

// ReasonFor returns the reason of a failure that follows from the observed facts and the rules. It is empty for failures of
// requests.
func ReasonFor(err error) string {
	denied, isDenied := errors.AsType[*policy.DeniedError](err)
	switch {
	case isDenied:
		return denied.Reason
	case isError[*plan.HeldError](err):
		return plan.ReasonStoreWentBack
	case isError[*transform.TooLargeError](err):
		return plan.ReasonTooLarge
	case isError[*transform.InvalidObjectError](err):
		return plan.ReasonInvalid
	case isError[*plan.RuleError](err), isError[*mutation.Error](err):
		return plan.ReasonRuleFailed
	case errors.Is(err, ErrNotServed):
		return plan.ReasonNotServed
	default:
		return ""
	}
}

func isError[E error](err error) bool {
	_, is := errors.AsType[E](err)
	return is
}

func keyOf(object interface {
	GetNamespace() string
	GetName() string
},
) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}
