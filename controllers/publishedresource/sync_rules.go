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

package publishedresource

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
)

const (
	// maxSyncRulesBytes bounds the specs in one SyncRules: each workspace has a copy.
	maxSyncRulesBytes = 256 << 10
	// maxSyncRules bounds the PublishedResources in one SyncRules, as its schema does.
	maxSyncRules = 4096
)

// SyncRulesOf returns the rules of PublishedResources for their users. It omits the source of a schema and the
// messages of conditions, because they do not concern users or may name other users' SyncTargets. A spec that
// does not fit in addition to the specs before it, by name, is absent.
func SyncRulesOf(hub Hub, protectedNamespaces []string, published []synchubv1alpha1.PublishedResource) (edgev2alpha1.SyncRulesStatus, error) {
	rules := edgev2alpha1.SyncRulesStatus{Hub: hub.UID, ProtectedNamespaces: protectedNamespaces}
	published = slices.Clone(published)
	slices.SortFunc(published, func(a, b synchubv1alpha1.PublishedResource) int { return cmp.Compare(a.Name, b.Name) })
	size := 0
	for i := range published {
		one := &published[i]
		if !hub.Owns(one) || one.DeletionTimestamp != nil || len(rules.PublishedResources) == maxSyncRules {
			continue
		}
		entry := edgev2alpha1.PublishedRules{Name: one.Name, CreationTimestamp: &one.CreationTimestamp}
		if ready := meta.FindStatusCondition(one.Status.Conditions, synchubv1alpha1.ConditionReady); ready != nil {
			entry.Ready, entry.Reason = ready.Status, ready.Reason
		}
		spec := one.Spec.DeepCopy()
		spec.API.SchemaFrom = nil
		content, err := json.Marshal(spec)
		if err != nil {
			return rules, fmt.Errorf("the spec of the PublishedResource %s: %w", one.Name, err)
		}
		if size+len(content) <= maxSyncRulesBytes {
			size += len(content)
			entry.Spec = &runtime.RawExtension{Raw: content}
		}
		rules.PublishedResources = append(rules.PublishedResources, entry)
	}
	return rules, nil
}

// FromSyncRules returns the PublishedResources that the rules describe. absent are the names of the
// PublishedResources without a spec.
func FromSyncRules(rules *edgev2alpha1.SyncRulesStatus) (published []synchubv1alpha1.PublishedResource, absent []string, err error) {
	for _, entry := range rules.PublishedResources {
		if entry.Spec == nil {
			absent = append(absent, entry.Name)
			continue
		}
		one := synchubv1alpha1.PublishedResource{}
		one.Name = entry.Name
		if entry.CreationTimestamp != nil {
			one.CreationTimestamp = *entry.CreationTimestamp
		}
		if err := json.Unmarshal(entry.Spec.Raw, &one.Spec); err != nil {
			return nil, nil, fmt.Errorf("the rules of the PublishedResource %s: %w", entry.Name, err)
		}
		if entry.Ready != "" {
			one.Status.Conditions = []metav1.Condition{{
				Type: synchubv1alpha1.ConditionReady, Status: entry.Ready, Reason: entry.Reason, Message: "the hub's operator can see why.",
			}}
		}
		published = append(published, one)
	}
	return published, absent, nil
}
