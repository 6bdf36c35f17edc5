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

package explain_test

import (
	"testing"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/explain"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/test/fixtures"
)

// scope replaces the selection of the config.
func scope(text string) func(*testing.T, *explain.Facts) {
	return func(t *testing.T, f *explain.Facts) {
		config(f).Spec = fixtures.Decode[edgev2alpha1.SyncerConfigSpec](t, text)
		f.Target.Value = nil
	}
}

// publish replaces a part of the PublishedResource's spec.
func publish(text string, absent bool) func(*testing.T, *explain.Facts) {
	return func(t *testing.T, f *explain.Facts) {
		publisher(f).Spec = fixtures.Decode[synchubv1alpha1.PublishedResourceSpec](t, "resource: {group: example.dev, resource: widgets, kind: Widget, version: v1}\n"+text)
		if absent {
			f.Target.Value = nil
		}
	}
}

var selectionCases = map[string]testCase{
	"no config": {
		change: func(_ *testing.T, f *explain.Facts) { f.Configs.Value.SyncerConfigs, f.Target.Value = nil, nil },
		step:   explain.StepSelected, state: explain.Stopped, reason: "NotSelected", texts: []string{"no config of the mailbox names widgets.example.dev"},
	},
	"another namespace": {
		change: scope("namespaceScope: {namespaces: [bakery, mill], resources: [{group: example.dev, resource: widgets}]}"),
		step:   explain.StepSelected, state: explain.Stopped, reason: "NotSelected", texts: []string{"SyncerConfig/all spec.namespaceScope.resources[0], but it names the namespaces bakery, mill"},
	},
	"another name, nearer than another namespace": {
		change: scope("namespacedObjects: [{group: example.dev, resource: widgets, objectsByNamespace: [{namespace: mill, names: [web]}]}, {group: example.dev, resource: widgets, objectsByNamespace: [{namespace: shop, names: [api]}]}]"),
		step:   explain.StepSelected, state: explain.Stopped, reason: "NotSelected", texts: []string{"spec.namespacedObjects[1], but it names the objects api"},
	},
	"other labels": {
		change: scope("namespaceScope: {namespaces: ['*'], resources: [{group: example.dev, resource: widgets, labelSelector: {matchLabels: {tier: gold}}}]}"),
		step:   explain.StepSelected, state: explain.Stopped, reason: "NotSelected", texts: []string{`its labelSelector "tier=gold" does not match`},
	},
	"other annotations": {
		change: scope("namespaceScope: {namespaces: ['*'], resources: [{group: example.dev, resource: widgets, annotations: {tier: gold}}]}"),
		step:   explain.StepSelected, state: explain.Stopped, reason: "NotSelected", texts: []string{`lacks the annotation tier with the value "gold"`},
	},
	"another version": {
		change: scope("namespaceScope: {namespaces: ['*'], resources: [{group: example.dev, resource: widgets, apiVersion: v2}]}"),
		step:   explain.StepSelected, state: explain.Stopped, reason: "NotSelected", texts: []string{"version v2, which mailboxes do not serve"},
	},
	"an empty list": {
		change: scope("namespacedObjects: [{group: example.dev, resource: widgets, objectsByNamespace: [{namespace: shop}]}]"),
		step:   explain.StepSelected, state: explain.Stopped, reason: "NotSelected", texts: []string{"spec.namespacedObjects[0], but a list of it is absent or empty"},
	},
	"deselected, and still there": {
		change: func(_ *testing.T, f *explain.Facts) { f.Configs.Value.SyncerConfigs = nil },
		step:   explain.StepSelected, state: explain.Stopped, reason: "NotSelected", onTarget: explain.Present, texts: []string{"it goes from the cluster once that is verified, with the policy Delete"},
	},
	"placed, and the config for placements is missing": {
		change: func(_ *testing.T, f *explain.Facts) {
			f.Configs.Value.SyncerConfigs = nil
			placements := owner.ForPlacements()
			f.Object.Value.SetAnnotations(map[string]string{ownership.MarkAnnotation: placements.Seal(ownership.Mark{
				Version: ownership.MarkVersion, Hub: placements.Hub, SyncTarget: placements.SyncTarget, Mailbox: "workload",
				Direction: ownership.DirectionUp, Self: transform.SelfOf(f.Object.Value),
			})})
		},
		step: explain.StepSelected, state: explain.Stopped, reason: "NotSelected", onTarget: explain.Present,
		texts: []string{"by its mark, which only the hub can verify, a placement put it into the mailbox: if so, the hub keeps it on the cluster"},
	},
	"suspended": {
		change: func(_ *testing.T, f *explain.Facts) { config(f).Spec.Suspend = true },
		step:   explain.StepSelected, state: explain.Stopped, reason: "Suspended", texts: []string{"SyncerConfig/all"},
	},
	"configs that cannot be read": {
		change: func(_ *testing.T, f *explain.Facts) { f.Configs = explain.Observed[explain.Configs]{Err: errDenied} },
		state:  explain.Unknown, texts: []string{"the configs of the mailbox cannot be read: you may not"},
	},
	"all of the resource": {
		change: func(t *testing.T, f *explain.Facts) {
			f.Configs.Value.SyncerConfigs = nil
			publish("select: All", false)(t, f)
		},
		state: explain.OK, texts: []string{"the PublishedResource selects all objects"},
	},
	"related to another": {
		change: func(t *testing.T, f *explain.Facts) {
			f.Configs.Value.SyncerConfigs = nil
			f.Target.Value = placed(t, f.Object.Value, transform.SyncSpec{Policy: ownership.PolicyDelete, Relation: "shops/front"})
		},
		state: explain.OK, onTarget: explain.Present, texts: []string{"related to another object, by shops/front"},
	},
	"held back by its labels": {
		change: publish("filter: {resource: {matchLabels: {tier: gold}}}", true),
		step:   explain.StepFilter, state: explain.Stopped, reason: "Filtered", texts: []string{"spec.filter of the PublishedResource widgets holds it back"},
	},
	"held back by its namespace": {
		change: publish("filter: {namespace: {matchLabels: {tier: gold}}}", true),
		step:   explain.StepFilter, state: explain.Stopped, reason: "Filtered",
	},
	"a namespace that cannot be seen": {
		change: func(t *testing.T, f *explain.Facts) {
			publish("filter: {namespace: {matchLabels: {tier: gold}}}", false)(t, f)
			f.Namespace.Value, f.Namespace.Err = nil, errDenied
		},
		state: explain.Unknown, texts: []string{"the labels of its namespace"},
	},
	"let pass": {
		change: publish("filter: {cel: self.spec.size == 3}", false), state: explain.OK, texts: []string{"lets it pass"},
	},
	"a filter that fails": {
		change: publish("filter: {cel: self.spec.colour == 'red'}", true),
		step:   explain.StepFilter, state: explain.Stopped, reason: "RuleFailed",
	},
	"another name on the target": {
		change: publish("naming: {name: '{{ .SyncTarget }}-{{ .Object.metadata.name }}'}", true),
		step:   explain.StepTarget, state: explain.Waiting, texts: []string{"does not have shop/florin-web yet"},
	},
	"a name that is not legal": {
		change: publish("naming: {name: '{{ .Object.metadata.name }}/x'}", true),
		step:   explain.StepName, state: explain.Stopped, reason: "Invalid", onTarget: explain.PresenceUnknown, texts: []string{"web/x"},
	},
	"in a namespace that the SyncTarget is not bound to": {
		change: func(_ *testing.T, f *explain.Facts) {
			f.SyncTarget.Spec.Namespaces = &edgev2alpha1.TargetNamespaces{Only: []string{"till"}}
			f.Target.Value = nil
		},
		step: explain.StepName, state: explain.Stopped, reason: "NamespaceNotAllowed", texts: []string{"spec.namespaces.only"},
	},
	"selected for coming up as well": {
		change: func(_ *testing.T, f *explain.Facts) {
			config(f).Spec.Upsync = []edgev2alpha1.UpsyncSet{{APIGroup: "example.dev", Resources: []string{"widgets"}, Namespaces: []string{"shop"}, Names: []string{"web"}}}
			f.Target.Value = nil
		},
		step: explain.StepName, state: explain.Stopped, reason: "SelectedUp",
	},
}
