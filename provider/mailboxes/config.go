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
	"slices"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/provider/holdings"
)

// Configs are held within limits of their own, and in turn: which are in force must not depend on how large the younger ones
// are, nor on the other objects of the mailbox. One beyond the limits is held as an [Identity] that also tells what its status
// says of it.

// configStatus is how many bytes the status of a config may take that is held. The hub replaces a larger one.
const configStatus = 64 << 10

// isConfig tells whether the objects of a resource are configs. Without a policy they are held whole, like all others.
func (m *Mailboxes) isConfig(resource schema.GroupVersionResource) bool {
	return m.policy != nil && resource != bindingsResource && slices.Contains(m.always, resource)
}

// account returns where the objects of a mailbox count.
func (w *watching) account(mailbox logicalcluster.Name) *account {
	return w.endpoint.owner.accountOf(mailbox, w.configs)
}

func (w *watching) limits(mailbox logicalcluster.Name) Limits {
	return w.endpoint.owner.limits(mailbox, w.configs)
}

// selects tells whether an object may be needed whole, as [Policy] does.
func (w *watching) selects(mailbox logicalcluster.Name, object *unstructured.Unstructured) (selected, known bool) {
	if w.configs {
		return true, true
	}
	return w.endpoint.owner.policy.Selects(mailbox, w.resource, object)
}

// strip removes from an object that a server sent what is never held.
func (w *watching) strip(object *unstructured.Unstructured) *unstructured.Unstructured {
	if w.configs {
		return configOf(object)
	}
	object.SetManagedFields(nil)
	// A field of this name is the tenant's own.
	delete(object.Object, extentField)
	return object
}

// identityOf returns which object it is, and by whose limits no more is held.
func (w *watching) identityOf(object *unstructured.Unstructured, refused refusal) *unstructured.Unstructured {
	if w.configs {
		return configIdentityOf(object)
	}
	identity := identityOf(object, w.endpoint.owner.policy.Marks())
	if refused == byResource {
		identity.Object[extentField] = extentIdentityByResource
	}
	return identity
}

// tieOf returns what decides which of two objects of one second is held first. Configs are compiled in this order.
func (w *watching) tieOf(object *unstructured.Unstructured) string {
	if w.configs {
		return object.GetKind() + "/" + object.GetName()
	}
	return string(object.GetUID())
}

// configOf returns what the hub needs of a config: what it asks for, and the status that the hub compares.
func configOf(object *unstructured.Unstructured) *unstructured.Unstructured {
	kept := bareOf(object)
	delete(kept.Object, extentField)
	metadata := metadataFields(kept)
	delete(metadata, "finalizers")
	delete(metadata, "ownerReferences")
	if status, ok := kept.Object["status"].(map[string]any); ok && holdings.SizeOf(&unstructured.Unstructured{Object: status}) > configStatus {
		kept.Object["status"] = emptyConfigStatus()
	}
	return kept
}

// emptyConfigStatus has a patch that is made from it replace the lists.
func emptyConfigStatus() map[string]any {
	return map[string]any{"conditions": []any{}, "failures": []any{}}
}

// configIdentityOf returns which config it is, with the condition that tells whether it is in force.
func configIdentityOf(object *unstructured.Unstructured) *unstructured.Unstructured {
	kept := identityOf(object, nil)
	if generation, ok := metadataFields(object)["generation"]; ok {
		metadataFields(kept)["generation"] = generation
	}
	status := emptyConfigStatus()
	kept.Object["status"] = status
	before, _, _ := unstructured.NestedFieldNoCopy(object.Object, "status")
	fields, _ := before.(map[string]any)
	if observed, ok := fields["observedGeneration"]; ok {
		status["observedGeneration"] = observed
	}
	conditions, _ := fields["conditions"].([]any)
	for _, condition := range conditions {
		one, _ := condition.(map[string]any)
		if one["type"] == "Ready" && holdings.SizeOf(&unstructured.Unstructured{Object: one}) <= identityText {
			status["conditions"] = []any{one}
		}
	}
	return kept
}

// bareOf returns an object without what neither the hub nor kcp says in it.
func bareOf(object *unstructured.Unstructured) *unstructured.Unstructured {
	metadata := metadataFields(object)
	delete(metadata, "managedFields")
	delete(metadata, "labels")
	annotations, _ := metadata["annotations"].(map[string]any)
	if mailbox, ok := annotations[logicalcluster.AnnotationKey]; ok {
		metadata["annotations"] = map[string]any{logicalcluster.AnnotationKey: mailbox}
	} else {
		delete(metadata, "annotations")
	}
	return object
}
