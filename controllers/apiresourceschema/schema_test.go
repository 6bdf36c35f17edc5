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

package apiresourceschema

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/syncmanager/crd"
)

// newTestController returns a controller without clients.
func newTestController(t *testing.T) *Controller {
	t.Helper()
	return New(Options{
		Clock: clocktesting.NewFakeClock(now),
		CRDs:  &crd.Store{},
	})
}

// Some outcomes need no request to any cluster.
func TestEnsureWithoutReading(t *testing.T) {
	type resource = synchubv1alpha1.ResourceDescriptor
	type source = synchubv1alpha1.APISource
	for name, test := range map[string]struct {
		resource resource
		api      source
		// field is the field that the problem names; empty for a claim.
		field string
	}{
		"a claim":             {resource{Resource: "configmaps"}, source{}, ""},
		"a claim by its kind": {resource{Kind: "Secret"}, source{Source: synchubv1alpha1.APISourceClaim}, ""},
		"a foreign claim":     {resource{Group: "a.io", Resource: "as", Version: "v1"}, source{IdentityHash: "abc"}, ""},
		"a claim on an API that kcp does not serve": {resource{Group: "apps", Resource: "deployments"}, source{Source: synchubv1alpha1.APISourceClaim}, "spec.api.source"},
		"an API that acts inside kcp":               {resource{Resource: "resourcequotas"}, source{Source: synchubv1alpha1.APISourceSchema}, "spec.resource"},
		"a version too many":                        {resource{Resource: "configmaps", Version: "v2"}, source{}, "spec.resource.version"},
	} {
		t.Run(name, func(t *testing.T) {
			published := &synchubv1alpha1.PublishedResource{}
			published.Spec.Resource, published.Spec.API = test.resource, test.api
			found, err := newTestController(t).reconcileSchema(t.Context(), published)
			if err != nil || found.schema != "" || found.requeueAfter != 0 {
				t.Fatalf("got %+v, %v", found, err)
			}
			if test.field == "" {
				if found.problem != nil {
					t.Error(found.problem)
				}
				return
			}
			if found.problem == nil || found.problem.reason != ReasonInvalid || !strings.HasPrefix(found.problem.Error(), test.field+":") || errors.Unwrap(found.problem) == nil {
				t.Errorf("want a problem about %s, got %v", test.field, found.problem)
			}
		})
	}
}

func TestMayMatch(t *testing.T) {
	for name, test := range map[string]struct {
		resource synchubv1alpha1.ResourceDescriptor
		defined  string
		want     bool
	}{
		"the resource":     {synchubv1alpha1.ResourceDescriptor{Group: "a.io", Resource: "as"}, "as.a.io", true},
		"another resource": {synchubv1alpha1.ResourceDescriptor{Group: "a.io", Resource: "as"}, "bs.a.io", false},
		"another group":    {synchubv1alpha1.ResourceDescriptor{Group: "a.io", Resource: "as"}, "as.b.io", false},
		"any by its kind":  {synchubv1alpha1.ResourceDescriptor{Group: "a.io", Kind: "A"}, "bs.a.io", true},
	} {
		if got := mayMatch(test.resource, schema.ParseGroupResource(test.defined)); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// For startDelay a hub leaves an up-to-date schema alone, so that syncing objects has priority.
func TestUpToDateSchemasAreLeftAlone(t *testing.T) {
	ready := metav1.Condition{Type: synchubv1alpha1.ConditionSchemaReady, Status: metav1.ConditionTrue, ObservedGeneration: 2}
	for name, test := range map[string]struct {
		change func(*synchubv1alpha1.PublishedResource)
		want   bool
	}{
		"made and unchanged":       {func(*synchubv1alpha1.PublishedResource) {}, true},
		"changed since":            {func(p *synchubv1alpha1.PublishedResource) { p.Generation++ }, false},
		"not ready":                {func(p *synchubv1alpha1.PublishedResource) { p.Status.Conditions[0].Status = metav1.ConditionFalse }, false},
		"never looked at":          {func(p *synchubv1alpha1.PublishedResource) { p.Status.Conditions = nil }, false},
		"no hub yet":               {func(p *synchubv1alpha1.PublishedResource) { p.Status.Hub = nil }, false},
		"without a schema":         {func(p *synchubv1alpha1.PublishedResource) { p.Status.SchemaName = "" }, false},
		"given to targets as well": {func(p *synchubv1alpha1.PublishedResource) { p.Spec.InstallCRD = true }, false},
	} {
		t.Run(name, func(t *testing.T) {
			published := &synchubv1alpha1.PublishedResource{}
			published.Generation, published.Status.SchemaName = 2, "v1.widgets.example.com"
			published.Status.Conditions = []metav1.Condition{ready}
			published.Status.Hub = &synchubv1alpha1.HubReference{UID: "hub"}
			test.change(published)
			if got := isUpToDate(published); got != test.want {
				t.Errorf("want %v, got %v", test.want, got)
			}
		})
	}
}
