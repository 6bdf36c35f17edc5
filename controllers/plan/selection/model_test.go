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

package selection_test

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/conversion"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
)

// modelRule is one combination of an entry's values in a config.
type modelRule struct {
	config            *modelConfig
	up                bool
	group, version    string
	resource, kind    string
	scope             scope
	namespaces, names []string
	labels            map[string]string
	annotations       map[string]string
	// meant are the conversions to apply to an upsync entry that uses the mailbox's names.
	meant []conversion.Conversion
}

type modelConfig struct {
	id                     string
	created                time.Time
	orphan, status, frozen bool
	conversions            []conversion.Conversion
}

type scope int

const (
	namespaced scope = iota
	clusterScoped
	anyScope
)

// modelRules returns the rules of the configs one by one, without an index.
func modelRules(syncerConfigs []*edgev2alpha1.SyncerConfig, edgeSyncConfigs []*edgev2alpha1.EdgeSyncConfig) []modelRule {
	var all []modelRule
	for _, config := range syncerConfigs {
		all = append(all, modelRulesOfSyncerConfig(config)...)
	}
	for _, config := range edgeSyncConfigs {
		base := &modelConfig{id: "EdgeSyncConfig/" + config.Name, created: config.CreationTimestamp.Time, status: true, conversions: valid(config.Spec.Conversions)}
		for _, entry := range config.Spec.DownSyncedResources {
			all = append(all, modelRuleForKind(base, entry))
		}
		for _, entry := range config.Spec.UpSyncedResources {
			one := modelRuleForKind(base, entry)
			one.up, one.meant = true, meant(base.conversions, entry)
			all = append(all, one)
		}
	}
	return all
}

func modelRuleForKind(config *modelConfig, entry edgev2alpha1.EdgeSyncConfigResource) modelRule {
	one := modelRule{
		config: config, group: entry.Group, version: entry.Version, kind: entry.Kind,
		namespaces: []string{entry.Namespace}, names: []string{entry.Name},
	}
	if entry.Namespace == "" {
		one.scope = clusterScoped
	}
	return one
}

func modelRulesOfSyncerConfig(config *edgev2alpha1.SyncerConfig) (all []modelRule) {
	spec := config.Spec
	base := &modelConfig{
		id: "SyncerConfig/" + config.Name, created: config.CreationTimestamp.Time, orphan: spec.DeletionPolicy == "Orphan",
		status: ptr.Deref(spec.StatusReturn, true), frozen: spec.Suspend, conversions: valid(spec.Conversions),
	}
	add := func(of edgev2alpha1.GroupResource, version string, scope scope, namespaces, names []string, selector *metav1.LabelSelector, annotations map[string]string) {
		one := modelRule{
			config: base, up: scope == anyScope, group: of.Group, resource: of.Resource, version: version, scope: scope,
			namespaces: namespaces, names: names, annotations: annotations,
		}
		if selector != nil {
			one.labels = selector.MatchLabels
		}
		all = append(all, one)
	}
	for _, entry := range spec.NamespaceScope.Resources {
		add(entry.GroupResource, entry.APIVersion, namespaced, spec.NamespaceScope.Namespaces, []string{"*"}, entry.LabelSelector, entry.Annotations)
	}
	for _, entry := range spec.NamespacedObjects {
		for _, objects := range entry.ObjectsByNamespace {
			add(entry.GroupResource, entry.APIVersion, namespaced, []string{objects.Namespace}, objects.Names, entry.LabelSelector, entry.Annotations)
		}
	}
	for _, entry := range spec.ClusterScope {
		add(entry.GroupResource, entry.APIVersion, clusterScoped, nil, entry.Objects, entry.LabelSelector, entry.Annotations)
	}
	for _, set := range spec.Upsync {
		for _, resource := range set.Resources {
			add(edgev2alpha1.GroupResource{Group: set.APIGroup, Resource: resource}, "", anyScope, set.Namespaces, set.Names, set.LabelSelector, set.Annotations)
		}
	}
	return all
}

func valid(specs []edgev2alpha1.Conversion) (all []conversion.Conversion) {
	for _, spec := range specs {
		if converts, err := conversion.New(spec); err == nil {
			all = append(all, converts)
		}
	}
	return all
}

// meant returns the conversions that apply to an upsync entry, if it can only contain the mailbox's names.
func meant(all []conversion.Conversion, entry edgev2alpha1.EdgeSyncConfigResource) (changing []conversion.Conversion) {
	share := func(one, other string) bool { return one == other || one == "*" || other == "*" }
	open := func(value string) string {
		if value == "" {
			return "*"
		}
		return value
	}
	for _, converts := range all {
		if converts.Downstream.Group == entry.Group && share(converts.Downstream.Kind, entry.Kind) {
			return nil
		}
		up := converts.Upstream
		if up.Group == entry.Group && share(up.Kind, entry.Kind) && share(open(up.Version), open(entry.Version)) &&
			share(open(up.Namespace), entry.Namespace) && share(open(up.Name), entry.Name) {
			changing = append(changing, converts)
		}
	}
	return changing
}

func (c modelRule) selects(object selection.Object) bool {
	if len(c.meant) == 0 {
		return c.selectsAs(object, object, conversion.Pattern{Kind: "*"})
	}
	return slices.ContainsFunc(c.meant, func(converts conversion.Conversion) bool {
		mailbox, ok := converts.Up(called(object))
		renamed := object
		renamed.Resource.Group, renamed.Resource.Version, renamed.Kind = mailbox.GVK.Group, mailbox.GVK.Version, mailbox.GVK.Kind
		renamed.Namespace, renamed.Name = mailbox.Namespace, mailbox.Name
		return ok && c.selectsAs(renamed, object, converts.Upstream)
	})
}

// selectsAs reports whether the entry selects the object, which the entry knows under another name. by contains the parts of the
// name that the conversion requires.
func (c modelRule) selectsAs(known, object selection.Object, by conversion.Pattern) bool {
	anyKind := c.resource == "*" || c.kind == "*" && by.Kind == "*"
	if c.up && anyKind && object.Resource.Group == "" && object.Resource.Resource == "namespaces" {
		return false
	}
	named := slices.Contains(c.names, known.Name) || by.Name != "" && slices.Contains(c.names, "*")
	return c.concerns(known) && c.isIn(object, by.Namespace != "") &&
		(named || slices.Contains(c.names, "*") && !selection.IsSystem(object)) &&
		within(c.labels, object.Labels) && within(c.annotations, object.Annotations)
}

func (c modelRule) concerns(object selection.Object) bool {
	ofResource := c.resource != "" && (c.resource == "*" || c.resource == object.Resource.Resource)
	ofKind := c.kind != "" && (c.kind == "*" || c.kind == object.Kind)
	return c.group == object.Resource.Group && (ofResource || ofKind) && (c.version == "" || c.version == object.Resource.Version)
}

func (c modelRule) isIn(object selection.Object, named bool) bool {
	if object.Namespace == "" {
		return c.scope != namespaced
	}
	all := slices.Contains(c.namespaces, "*") && (named || !strings.HasPrefix(object.Namespace, "kube-"))
	return c.scope != clusterScoped && (all || slices.Contains(c.namespaces, object.Namespace))
}

func within(some map[string]string, all selection.MetadataMap) bool {
	for key, value := range some {
		if actual, ok := all[key]; !ok || actual != value {
			return false
		}
	}
	return true
}

func called(object selection.Object) conversion.Name {
	return conversion.Name{GVK: object.Resource.GroupVersion().WithKind(object.Kind), Namespace: object.Namespace, Name: object.Name}
}

// convert returns the result of the first conversion that matches the object.
func (c *modelConfig) convert(object selection.Object, up bool) (conversion.Name, *conversion.Conversion) {
	for _, converts := range c.conversions {
		convert := converts.Down
		if up {
			convert = converts.Up
		}
		if name, ok := convert(called(object)); ok {
			if name == called(object) {
				return name, nil
			}
			return name, &converts
		}
	}
	return called(object), nil
}

// matchByModel returns the expected result of Match or MatchUp.
func matchByModel(all []modelRule, object selection.Object, up bool) (result selection.Selection, ok bool) {
	var selecting []*modelConfig
	for _, candidate := range all {
		if candidate.up == up && candidate.selects(object) && !slices.Contains(selecting, candidate.config) {
			selecting = append(selecting, candidate.config)
		}
	}
	if len(selecting) == 0 {
		return selection.Selection{}, false
	}
	oldest := slices.MinFunc(selecting, func(a, b *modelConfig) int {
		if a.created.Equal(b.created) {
			return strings.Compare(a.id, b.id)
		}
		return a.created.Compare(b.created)
	})
	result = selection.Selection{Policy: ownership.PolicyDelete, Suspended: true}
	var name conversion.Name
	name, result.Conversion = oldest.convert(object, up)
	for _, config := range selecting {
		if config.orphan {
			result.Policy = ownership.PolicyOrphan
		}
		result.StatusReturn = result.StatusReturn || config.status
		result.Suspended = result.Suspended && config.frozen
		result.Configs = append(result.Configs, config.id)
		if other, _ := config.convert(object, up); other != name {
			result.Overruled = append(result.Overruled, config.id)
		}
	}
	slices.Sort(result.Configs)
	slices.Sort(result.Overruled)
	return result, true
}
