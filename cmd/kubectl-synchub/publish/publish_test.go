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

package publish_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/publish"
)

var florin = synchubv1alpha1.SyncTargetSchema{Cluster: "2x4y", Name: "florin"}

// mapper returns the REST mapper of a target.
func mapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "ResourceQuota"}, {Version: "v1", Kind: "Event"},
		{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "example.dev", Version: "v1", Kind: "Widget"},
	} {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	return mapper
}

// existing returns a PublishedResource of the given age in minutes.
func existing(name string, resource synchubv1alpha1.ResourceDescriptor, minutes int, from *synchubv1alpha1.SchemaFrom) synchubv1alpha1.PublishedResource {
	return synchubv1alpha1.PublishedResource{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(0, 0).Add(-time.Duration(minutes) * time.Minute))},
		Spec:       synchubv1alpha1.PublishedResourceSpec{Resource: resource, API: synchubv1alpha1.APISource{SchemaFrom: from}},
	}
}

func TestPlan(t *testing.T) {
	other := florin
	other.Name = "guilder"
	widget := synchubv1alpha1.ResourceDescriptor{Group: "example.dev", Resource: "widgets"}
	known := []synchubv1alpha1.PublishedResource{
		existing("later", widget, 1, nil),
		existing("mine", widget, 2, &synchubv1alpha1.SchemaFrom{SyncTarget: &florin}),
	}
	for name, test := range map[string]struct {
		resource string
		existing []synchubv1alpha1.PublishedResource
		// wanted is the API source, and published is the name of the existing PublishedResource.
		wanted    synchubv1alpha1.APISourceType
		kind      string
		published string
		elsewhere bool
		err       string
	}{
		"an own API":       {resource: "widgets.example.dev", wanted: "Schema", kind: "Widget"},
		"a built-in one":   {resource: "deployments.apps", wanted: "Schema", kind: "Deployment"},
		"what kcp serves":  {resource: "configmaps", wanted: "Claim", kind: "ConfigMap"},
		"beside another":   {resource: "widgets.example.dev", existing: []synchubv1alpha1.PublishedResource{existing("gadgets", synchubv1alpha1.ResourceDescriptor{Group: "example.dev", Resource: "gadgets"}, 1, nil)}, wanted: "Schema", kind: "Widget"},
		"of another group": {resource: "widgets.example.dev", existing: []synchubv1alpha1.PublishedResource{existing("theirs", synchubv1alpha1.ResourceDescriptor{Group: "example.com", Resource: "widgets"}, 1, nil)}, wanted: "Schema", kind: "Widget"},
		"published, the oldest counts": {
			resource: "widgets.example.dev", existing: known, published: "mine",
		},
		"published from another target": {
			resource: "widgets.example.dev", existing: []synchubv1alpha1.PublishedResource{existing("theirs", widget, 1, &synchubv1alpha1.SchemaFrom{SyncTarget: &other})}, published: "theirs", elsewhere: true,
		},
		"published from the hosting cluster": {
			resource: "widgets.example.dev", existing: known[:1], published: "later", elsewhere: true,
		},
		"published by its kind": {
			resource: "widgets.example.dev", existing: []synchubv1alpha1.PublishedResource{existing("kind", synchubv1alpha1.ResourceDescriptor{Group: "example.dev", Kind: "Widget"}, 1, nil)}, published: "kind", elsewhere: true,
		},
		"claimed already": {
			resource: "configmaps", existing: []synchubv1alpha1.PublishedResource{existing("configmaps", synchubv1alpha1.ResourceDescriptor{Resource: "configmaps"}, 1, nil)}, published: "configmaps",
		},
		"published, but not served": {
			resource: "gadgets.example.dev", existing: []synchubv1alpha1.PublishedResource{existing("gadgets", synchubv1alpha1.ResourceDescriptor{Group: "example.dev", Resource: "gadgets"}, 1, nil)}, published: "gadgets", elsewhere: true,
		},
		"not served":               {resource: "gadgets.example.dev", err: "the target does not serve gadgets.example.dev"},
		"what acts inside kcp":     {resource: "resourcequotas", wanted: synchubv1alpha1.APISourceAuto, kind: "ResourceQuota"},
		"what the hub itself uses": {resource: "events", err: "events cannot be brought to mailboxes: spec.resource"},
	} {
		t.Run(name, func(t *testing.T) {
			want := test.published
			if test.wanted != "" {
				want = fmt.Sprintf("make %s, %s %s", test.resource, test.wanted, test.kind)
			}
			if test.wanted != "" && test.wanted != synchubv1alpha1.APISourceClaim {
				want += " of 2x4y florin"
			}
			if test.elsewhere {
				want += " from elsewhere"
			}
			imports, err := publish.Plan([]schema.GroupResource{schema.ParseGroupResource(test.resource)}, florin, mapper(), test.existing)
			if test.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), test.err) {
					t.Errorf("got %v, want %q", err, test.err)
				}
				return
			}
			if err != nil || len(imports) != 1 {
				t.Fatalf("%v, %v", imports, err)
			}
			if got := summary(imports[0]); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// summary describes a publication.
func summary(found publish.Publication) string {
	text := ""
	if found.Existing != nil {
		text = found.Existing.Name
	}
	if made := found.Desired; made != nil {
		text += fmt.Sprintf("make %s, %s %s", made.Name, made.Spec.API.Source, made.Spec.Resource.Kind)
		if from := made.Spec.API.SchemaFrom; from != nil && from.SyncTarget != nil {
			text += fmt.Sprintf(" of %s %s", from.SyncTarget.Cluster, from.SyncTarget.Name)
		}
		if name := (schema.GroupResource{Group: made.Spec.Resource.Group, Resource: made.Spec.Resource.Resource}); name != found.Resource {
			text += fmt.Sprintf(", which is %s", name)
		}
	}
	if found.HasOtherSchema(synchubv1alpha1.SchemaFrom{SyncTarget: &florin}) {
		text += " from elsewhere"
	}
	return text
}

func TestPlanNamesAllThatIsWrongAndEachResourceOnce(t *testing.T) {
	resources := []schema.GroupResource{{Group: "example.dev", Resource: "widgets"}, {Group: "example.dev", Resource: "widgets"}, {Group: "a.dev", Resource: "as"}, {Group: "b.dev", Resource: "bs"}}
	imports, err := publish.Plan(resources[:2], florin, mapper(), nil)
	if err != nil || len(imports) != 1 {
		t.Errorf("%v, %v", imports, err)
	}
	if _, err := publish.Plan(resources, florin, mapper(), nil); err == nil || !strings.Contains(err.Error(), "as.a.dev") || !strings.Contains(err.Error(), "bs.b.dev") {
		t.Errorf("got %v", err)
	}
}
