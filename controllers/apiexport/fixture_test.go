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

package apiexport

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/test/fixtures"
)

const identity = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// fixture is a planner with fake schemas and fake discovery.
type fixture struct {
	t       *testing.T
	planner *planner
	export  apisv1alpha2.APIExportSpec
	// schemas are the schemas in the provider workspace. served are the APIs that mailboxes have from other exports.
	schemas map[string]*apisv1alpha1.APIResourceSchema
	served  map[string]publishedresource.API
	// blind is true if discovery in mailboxes fails.
	blind bool
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	w := &fixture{t: t, schemas: map[string]*apisv1alpha1.APIResourceSchema{}, served: map[string]publishedresource.API{}}
	w.planner = &planner{
		compiler: publishedresource.NewCompiler(),
		getSchema: func(_ context.Context, name string) (*apisv1alpha1.APIResourceSchema, error) {
			return w.schemas[name], nil
		},
		discover: func(_ context.Context, resource schema.GroupVersionResource) (publishedresource.API, error) {
			if w.blind {
				return publishedresource.API{}, errors.New("blind")
			}
			api, ok := w.served[resource.GroupResource().String()]
			if !ok {
				return publishedresource.API{}, fmt.Errorf("%s: %w", resource, mailboxes.ErrNotServed)
			}
			return api, nil
		},
	}
	w.schema("as.a.io", "A", true, "v1", "v2")
	w.schema("bs.b.io", "B", true, "v1")
	w.schema("clusters.c.io", "Cluster", false, "v1")
	w.serve("fs.f.io", "F", true)
	return w
}

// schema adds the schema s-<resource>.
func (w *fixture) schema(resource, kind string, namespaced bool, versions ...string) {
	group := schema.ParseGroupResource(resource)
	made := &apisv1alpha1.APIResourceSchema{}
	made.Name = "s-" + resource
	made.Spec.Group, made.Spec.Names.Plural, made.Spec.Names.Kind = group.Group, group.Resource, kind
	made.Spec.Scope = apiextensionsv1.ClusterScoped
	if namespaced {
		made.Spec.Scope = apiextensionsv1.NamespaceScoped
	}
	for _, version := range versions {
		made.Spec.Versions = append(made.Spec.Versions, apisv1alpha1.APIResourceVersion{Name: version, Served: true})
	}
	w.schemas[made.Name] = made
}

// serve makes mailboxes serve version v1 of an API from another export.
func (w *fixture) serve(resource, kind string, namespaced bool) {
	w.served[resource] = publishedresource.API{
		GroupVersionResource: schema.ParseGroupResource(resource).WithVersion("v1"), Kind: kind, Namespaced: namespaced, StatusSubresource: true,
	}
}

// resource returns a PublishedResource. Higher generations are younger by one second each.
func resource(t *testing.T, name, schemaName, spec string) synchubv1alpha1.PublishedResource {
	t.Helper()
	made := synchubv1alpha1.PublishedResource{}
	made.Name, made.UID, made.Generation = name, types.UID("uid-"+name), 1
	made.Spec = fixtures.Decode[synchubv1alpha1.PublishedResourceSpec](t, spec)
	made.Status.SchemaName = schemaName
	schemaReady(&made, 1, metav1.ConditionTrue, "Created")
	return made
}

func schemaReady(resource *synchubv1alpha1.PublishedResource, generation int64, status metav1.ConditionStatus, reason string) {
	meta.SetStatusCondition(&resource.Status.Conditions, metav1.Condition{
		Type: synchubv1alpha1.ConditionSchemaReady, Status: status, Reason: reason, Message: "The schema is " + reason + ".", ObservedGeneration: generation,
	})
}

// outcome is a plan as text.
type outcome struct {
	// claimed contains "name Exported-reason/Ready-reason" of each PublishedResource.
	claimed []string
	// messages are the messages of the conditions Ready.
	messages map[string]string
	// export holds the entries of the export after the plan. watched and synced are resources; a related API has a +.
	export, watched, synced []string
	waits                   bool
}

// plan makes and executes a plan. The first arguments are the oldest.
func (w *fixture) plan(resources ...synchubv1alpha1.PublishedResource) outcome {
	w.t.Helper()
	for i := range resources {
		resources[i].CreationTimestamp = metav1.Unix(int64(i), 0)
	}
	previous := w.export.DeepCopy()
	made, err := w.planner.newPlan(w.t.Context(), slices.Clone(resources), &w.export)
	if err != nil {
		w.t.Fatal(err)
	}
	if !slices.EqualFunc(w.export.Resources, previous.Resources, func(a, b apisv1alpha2.ResourceSchema) bool { return a.Schema == b.Schema }) {
		w.t.Error("a plan changed the export")
	}
	return w.execute(made)
}

func (w *fixture) execute(made *exportPlan) outcome {
	w.t.Helper()
	got := outcome{messages: map[string]string{}, waits: made.needsPolling}
	mergeAll(&w.export, made.exportEntries())
	for _, exported := range w.export.Resources {
		got.export = append(got.export, exported.Schema)
	}
	for _, claim := range w.export.PermissionClaims {
		name := schema.GroupResource{Group: claim.Group, Resource: claim.Resource}.String()
		if claim.IdentityHash != "" {
			name += "@" + claim.IdentityHash[:4]
		}
		got.export = append(got.export, name)
	}
	for _, candidate := range made.resources {
		exported, ready := candidate.conditions()
		if (exported.Status == metav1.ConditionTrue) != (exported.Reason == ReasonExported) || (ready.Status == metav1.ConditionTrue) != (ready.Reason == ReasonReady) {
			w.t.Errorf("the reasons do not fit: %+v, %+v", exported, ready)
		}
		got.claimed = append(got.claimed, candidate.published.Name+" "+exported.Reason+"/"+ready.Reason)
		got.messages[candidate.published.Name] = ready.Message
	}
	for _, resource := range made.watchedResources() {
		got.watched = append(got.watched, resource.GroupResource().String()+"/"+resource.Version)
	}
	for _, resource := range made.syncedResources() {
		name := resource.GroupResource().String()
		if resource.RelatedOnly {
			name += "+"
		}
		got.synced = append(got.synced, name)
	}
	w.planner.previous = made.publishedStates()
	return got
}

// want compares an outcome; each text is a list of words in order.
func (w *fixture) want(got outcome, messages, export, watched, synced string) {
	w.t.Helper()
	for what, pair := range map[string][2]string{
		"messages": {messages, strings.Join(got.claimed, ", ")},
		"export":   {export, strings.Join(got.export, " ")},
		"watched":  {strings.TrimSpace("namespaces/v1 " + watched), strings.Join(got.watched, " ")},
		"synced":   {synced, strings.Join(got.synced, " ")},
	} {
		if pair[0] != pair[1] {
			w.t.Errorf("%s: want %q, got %q; %v", what, pair[0], pair[1], got.messages)
		}
	}
}

// expectMessage checks that a message contains all the parts.
func (w *fixture) expectMessage(got outcome, name string, parts ...string) {
	w.t.Helper()
	for _, part := range parts {
		if !strings.Contains(got.messages[name], part) {
			w.t.Errorf("%s: want %q in %q", name, part, got.messages[name])
		}
	}
}

const (
	aSpec       = `resource: {group: a.io, resource: as}`
	bSpec       = `resource: {group: b.io, resource: bs}`
	clusterSpec = `resource: {group: c.io, resource: clusters}`
	nativeSpec  = `resource: {resource: configmaps}`
	foreignSpec = `{resource: {group: f.io, resource: fs, version: v1}, api: {identityHash: ` + identity + `}}`
)
