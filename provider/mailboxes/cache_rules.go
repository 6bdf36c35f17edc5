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
	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/provider/cachesize"
)

// Configs have limits of their own, and are admitted strictly by age: neither the size of younger configs nor the other
// objects of the mailbox may decide which configs are in force. A config beyond the limits is cached as an [IdentityOnly]
// with the condition that reports it.

// maxConfigStatusBytes bounds the cached status of a config, in bytes. The hub replaces a larger one.
const maxConfigStatusBytes = 64 << 10

// cacheRules decide how much of the objects of a resource its caches hold.
type cacheRules struct {
	parts    *parts
	resource schema.GroupVersionResource
	// configs is true if the objects are configs, and dropsUnowned if the objects of unowned mailboxes are dropped.
	configs, dropsUnowned bool
}

func newCacheRules(parts *parts, resource schema.GroupVersionResource) *cacheRules {
	return &cacheRules{parts: parts, resource: resource, configs: parts.options.isConfig(resource), dropsUnowned: parts.options.dropsUnowned(resource)}
}

// selects reports whether an object may be needed whole, as the policy does. Configs always are.
func (r *cacheRules) selects(mailbox logicalcluster.Name, object *unstructured.Unstructured) (selected, known bool) {
	if r.configs {
		return true, true
	}
	return r.parts.options.Policy.Selects(r.parts.caches, mailbox, r.resource, object)
}

// strip removes the fields that are never cached from an object of a server.
func (r *cacheRules) strip(object *unstructured.Unstructured) *unstructured.Unstructured {
	if r.configs {
		return stripConfig(object, r.parts.options.Policy.RetainedAnnotations())
	}
	object.SetManagedFields(nil)
	// Only the hub may set this field.
	delete(object.Object, projectionField)
	return object
}

// toIdentityOnly returns the identity of an object, with the limit that it exceeds.
func (r *cacheRules) toIdentityOnly(object *unstructured.Unstructured, exceeded exceededLimit) *unstructured.Unstructured {
	if r.configs {
		return toConfigIdentity(object)
	}
	identity := toIdentityOnly(object, r.parts.options.Policy.RetainedAnnotations())
	if exceeded == resourceLimit {
		identity.Object[projectionField] = projectionIdentityByResource
	}
	return identity
}

// tieBreaker orders objects that were created within one second. Configs are compiled in this order.
func (r *cacheRules) tieBreaker(object *unstructured.Unstructured) string {
	if r.configs {
		return object.GetKind() + "/" + object.GetName()
	}
	return string(object.GetUID())
}

// isExcluded reports whether an object or an entry belongs to an evicted or an unowned mailbox.
func (r *cacheRules) isExcluded(object runtime.Object) bool {
	return r.parts.usages.evicted.Load() > 0 && r.parts.usages.isEvicted(mailboxOf(toObject(object)), r.configs) ||
		r.dropsUnowned && r.parts.owned.isUnowned(mailboxOf(toObject(object)))
}

// stripConfig returns the fields of a config that the hub reads: its spec, the given annotations unless they are long, its finalizers,
// and the status that the hub compares.
func stripConfig(object *unstructured.Unstructured, annotations []string) *unstructured.Unstructured {
	few := fewAnnotations(object, annotations)
	kept := stripMetadata(object)
	delete(kept.Object, projectionField)
	metadata := metadataFields(kept)
	metadata["annotations"] = few
	delete(metadata, "ownerReferences")
	if status, ok := kept.Object["status"].(map[string]any); ok && cachesize.SizeOf(&unstructured.Unstructured{Object: status}) > maxConfigStatusBytes {
		kept.Object["status"] = emptyConfigStatus()
	}
	return kept
}

// emptyConfigStatus makes a patch that is computed against it replace all lists.
func emptyConfigStatus() map[string]any {
	return map[string]any{"conditions": []any{}, "failures": []any{}}
}

// toConfigIdentity returns the identity of a config, with the condition that reports whether the config is in force.
func toConfigIdentity(object *unstructured.Unstructured) *unstructured.Unstructured {
	kept := toIdentityOnly(object, nil)
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
		if one["type"] == "Ready" && cachesize.SizeOf(&unstructured.Unstructured{Object: one}) <= maxIdentityText {
			status["conditions"] = []any{one}
		}
	}
	return kept
}

// stripMetadata removes labels, managedFields, and all annotations except the logical cluster.
func stripMetadata(object *unstructured.Unstructured) *unstructured.Unstructured {
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
