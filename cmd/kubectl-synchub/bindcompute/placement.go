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

package bindcompute

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

// SystemNamespaces are the namespaces that an EdgePlacement without a namespace selector leaves out: those that
// Kubernetes, kcp and synchub make for themselves. The hub protects namespaces of these names on targets anyway.
var SystemNamespaces = []string{"kcp-system", corev1.NamespaceNodeLease, metav1.NamespacePublic, metav1.NamespaceSystem, "synchub"}

// Placement are the settings of an EdgePlacement.
type Placement struct {
	// Name of the EdgePlacement. If it is empty, DefaultName derives it from Inventory.
	Name string
	// Inventory is the path of the workspace with the Locations.
	Inventory string
	// Locations select Locations by their labels. A Location is selected if any of them matches; without selectors, all
	// Locations of the inventory are selected.
	Locations []metav1.LabelSelector
	// Namespaces selects the namespaces of the objects. If it is nil, all but SystemNamespaces are selected.
	Namespaces *metav1.LabelSelector
	// AggregateStatus returns the status on the clusters to the objects of the workspace. If it is nil, a new EdgePlacement
	// does so, and Bind accepts either value in an existing EdgePlacement.
	AggregateStatus *bool
	// Upsync are the resources whose objects appear in the workspace. If it is nil, a new EdgePlacement brings up Pods, and Bind accepts any
	// in an existing EdgePlacement.
	Upsync []schema.GroupResource
}

// ParseResource parses the name of a resource, such as replicasets.apps.
func ParseResource(text string) (schema.GroupResource, error) {
	resource := schema.ParseGroupResource(text)
	if len(validation.IsDNS1123Label(resource.Resource)) > 0 || resource.Group != "" && len(validation.IsDNS1123Subdomain(resource.Group)) > 0 {
		return resource, fmt.Errorf("%q is not the name of a resource, such as pods or replicasets.apps", text)
	}
	return resource, nil
}

// upsync returns the entries of the EdgePlacement for upsync.
func (p Placement) upsync() (entries []edgev2alpha1.PlacementUpsync) {
	resources := p.Upsync
	if resources == nil {
		resources = []schema.GroupResource{{Resource: "pods"}}
	}
	for _, resource := range resources {
		entries = append(entries, edgev2alpha1.PlacementUpsync{
			UpsyncSet: edgev2alpha1.UpsyncSet{
				APIGroup: resource.Group, Resources: []string{resource.Resource}, Namespaces: []string{edgev2alpha1.Wildcard}, Names: []string{edgev2alpha1.Wildcard},
			},
			To: edgev2alpha1.UpsyncToWorkspace,
		})
	}
	return entries
}

// Object returns the EdgePlacement.
func (p Placement) Object() *edgev2alpha1.EdgePlacement {
	name, locations, namespaces := p.Name, p.Locations, p.Namespaces
	if name == "" {
		name = DefaultName(p.Inventory)
	}
	if len(locations) == 0 {
		locations = []metav1.LabelSelector{{}}
	}
	if namespaces == nil {
		namespaces = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: slices.Clone(SystemNamespaces),
		}}}
	}
	return &edgev2alpha1.EdgePlacement{
		TypeMeta:   metav1.TypeMeta{APIVersion: edgev2alpha1.GroupVersion.String(), Kind: "EdgePlacement"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{edgev2alpha1.AnnotationBindCompute: p.Inventory}},
		Spec: edgev2alpha1.EdgePlacementSpec{
			LocationSelectors:   locations,
			InventoryWorkspaces: []string{p.Inventory},
			AggregateStatus:     p.AggregateStatus == nil || *p.AggregateStatus,
			Downsync:            []edgev2alpha1.DownsyncObjectTest{{NamespaceSelectors: []metav1.LabelSelector{*namespaces}}},
			Upsync:              p.upsync(),
		},
	}
}

// DefaultName returns the name of the EdgePlacement for an inventory workspace: the path with dots for colons. No two
// paths have the same name, since path segments have no dots. A path too long for a name is cut, and a hash appended.
func DefaultName(inventory string) string {
	name := strings.ReplaceAll(inventory, ":", ".")
	if len(name) <= validation.DNS1123SubdomainMaxLength {
		return name
	}
	hash := sha256.Sum256([]byte(inventory))
	suffix := "-" + hex.EncodeToString(hash[:8])
	return strings.TrimRight(name[:validation.DNS1123SubdomainMaxLength-len(suffix)], ".-") + suffix
}

// differences returns a text for each field of an existing EdgePlacement that differs from the settings. It ignores all other
// fields, which users may set.
func (p Placement) differences(existing *edgev2alpha1.EdgePlacementSpec) (found []string) {
	desired := p.Object().Spec
	compare := func(field, is, wanted string) {
		if is != wanted {
			found = append(found, fmt.Sprintf("%s is %s, not %s", field, is, wanted))
		}
	}
	compare("spec.inventoryWorkspaces", formatSet(existing.InventoryWorkspaces), formatSet(desired.InventoryWorkspaces))
	compare("spec.locationSelectors", formatSelectors(existing.LocationSelectors), formatSelectors(desired.LocationSelectors))
	compare("spec.downsync", formatTests(existing.Downsync), formatTests(desired.Downsync))
	if p.AggregateStatus != nil {
		compare("spec.aggregateStatus", fmt.Sprint(existing.AggregateStatus), fmt.Sprint(desired.AggregateStatus))
	}
	if p.Upsync != nil {
		compare("spec.upsync", formatUpsync(existing.Upsync), formatUpsync(desired.Upsync))
	}
	return found
}

func formatUpsync(entries []edgev2alpha1.PlacementUpsync) string {
	texts := make([]string, 0, len(entries))
	for i := range entries {
		entry := &entries[i]
		texts = append(texts, fmt.Sprintf("{apiGroup: %q, resources: %s, namespaces: %s, names: %s, labelSelector: %q, to: %s}", entry.APIGroup,
			formatSet(entry.Resources), formatSet(entry.Namespaces), formatSet(entry.Names), metav1.FormatLabelSelector(entry.LabelSelector), entry.To))
	}
	return formatSet(texts)
}

func formatSet(items []string) string {
	return "[" + strings.Join(slices.Sorted(slices.Values(items)), ", ") + "]"
}

// formatSelectors formats selectors that are alternatives, so their order does not matter.
func formatSelectors(selectors []metav1.LabelSelector) string {
	texts := make([]string, 0, len(selectors))
	for i := range selectors {
		texts = append(texts, fmt.Sprintf("%q", formatSelector(&selectors[i])))
	}
	return formatSet(texts)
}

// formatSelector formats a selector as kubectl accepts it. The empty selector is "".
func formatSelector(selector *metav1.LabelSelector) string {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return metav1.FormatLabelSelector(selector)
	}
	return parsed.String()
}

func formatTests(tests []edgev2alpha1.DownsyncObjectTest) string {
	texts := make([]string, 0, len(tests))
	for i := range tests {
		texts = append(texts, formatTest(&tests[i]))
	}
	return formatSet(texts)
}

func formatTest(test *edgev2alpha1.DownsyncObjectTest) string {
	var parts []string
	if test.APIGroup != nil {
		parts = append(parts, fmt.Sprintf("apiGroup: %q", *test.APIGroup))
	}
	for _, list := range []struct {
		field  string
		values []string
	}{{"resources", test.Resources}, {"namespaces", test.Namespaces}, {"objectNames", test.ObjectNames}} {
		if len(list.values) > 0 {
			parts = append(parts, list.field+": "+formatSet(list.values))
		}
	}
	for _, list := range []struct {
		field     string
		selectors []metav1.LabelSelector
	}{{"namespaceSelectors", test.NamespaceSelectors}, {"labelSelectors", test.LabelSelectors}} {
		if len(list.selectors) > 0 {
			parts = append(parts, list.field+": "+formatSelectors(list.selectors))
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
