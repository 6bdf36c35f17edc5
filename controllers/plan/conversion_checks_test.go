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

package plan

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
)

// publishedAs returns a resource of a PublishedResource, with the plural and the kind in group up.io.
func publishedAs(kind string, change ...func(*Resource)) Resource {
	resource := Resource{
		PublishedResource: strings.ToLower(kind), Kind: kind, Namespaced: true, Rules: &Rules{Versions: []string{"v1", "v2"}},
		GroupVersionResource: schema.GroupVersionResource{Group: "up.io", Version: "v1", Resource: strings.ToLower(kind) + "s"},
	}
	for _, one := range change {
		one(&resource)
	}
	return resource
}

// A tenant's conversion produces only kinds that an operator has published, and evades none of the operator's rules.
func TestCheckConversion(t *testing.T) {
	const unpublished, bypasses = policy.ReasonConversionNotPublished, policy.ReasonConversionBypassesRules
	written := func(naming, filter, mutation string) func(*Resource) {
		return func(r *Resource) { r.Rules.Texts = RuleTexts{naming, filter, mutation} }
	}
	projected := func(group, version, kind string) func(*Resource) {
		return func(r *Resource) {
			r.Projected = TargetAPI{GroupVersionResource: schema.GroupVersionResource{Group: group, Version: version, Resource: "below"}, Kind: kind}
		}
	}
	allowing := func(namespaces, upsync bool) func(*Resource) {
		return func(r *Resource) { r.Allowed = Allowed{namespaces, upsync} }
	}
	adopts := func(r *Resource) { r.Adoption = synchubv1alpha1.AdoptionAlways }
	for name, test := range map[string]struct {
		from, other Resource
		made        string
		reason      string
		// field is named by the message.
		field  string
		allows Allowed
	}{
		"another name only":                {publishedAs("A"), publishedAs("B"), "A.up.io", "", "", Allowed{}},
		"its own kind, which allows":       {publishedAs("A", allowing(true, true)), publishedAs("B"), "A.up.io", "", "", Allowed{true, true}},
		"a published kind":                 {publishedAs("A"), publishedAs("B"), "B.up.io", "", "", Allowed{}},
		"in a version":                     {publishedAs("A"), publishedAs("B"), "B.v2.up.io", "", "", Allowed{}},
		"in an unknown version":            {publishedAs("A"), publishedAs("B"), "B.v3.up.io", unpublished, "B.up.io in version v3", Allowed{}},
		"an unpublished kind":              {publishedAs("A"), publishedAs("B"), "C.up.io", unpublished, "C.up.io", Allowed{}},
		"in another group":                 {publishedAs("A"), publishedAs("B"), "B.down.io", unpublished, "B.down.io", Allowed{}},
		"in the core group":                {publishedAs("A"), publishedAs("B"), "B.", unpublished, "", Allowed{}},
		"a kind of related objects only":   {publishedAs("A"), publishedAs("B", func(r *Resource) { r.RelatedOnly = true }), "B.up.io", unpublished, "", Allowed{}},
		"a kind that is being unpublished": {publishedAs("A"), publishedAs("B", func(r *Resource) { r.Unpublishing = true }), "B.up.io", unpublished, "", Allowed{}},
		"by its name on the target":        {publishedAs("A"), publishedAs("B", projected("down.io", "v1", "D")), "D.down.io", "", "", Allowed{}},
		"by its name in mailboxes":         {publishedAs("A"), publishedAs("B", projected("down.io", "v1", "D")), "B.up.io", unpublished, "", Allowed{}},
		"what it is on the target anyway":  {publishedAs("A", projected("down.io", "v1", "D")), publishedAs("B"), "D.down.io", "", "", Allowed{}},

		"out of the naming":               {publishedAs("A", written("tenant", "", "")), publishedAs("B"), "B.up.io", bypasses, "spec.naming", Allowed{}},
		"into another naming":             {publishedAs("A", written("tenant", "", "")), publishedAs("B", written("other", "", "")), "B.up.io", bypasses, "spec.naming", Allowed{}},
		"past the naming of the new kind": {publishedAs("A"), publishedAs("B", written("tenant", "", "")), "B.up.io", bypasses, "spec.naming", Allowed{}},
		"with the same naming":            {publishedAs("A", written("tenant", "", "")), publishedAs("B", written("tenant", "", "")), "B.up.io", "", "", Allowed{}},
		"past a filter":                   {publishedAs("A"), publishedAs("B", written("", "safe", "")), "B.up.io", bypasses, "spec.filter", Allowed{}},
		"with a filter of its own":        {publishedAs("A", written("", "safe", "")), publishedAs("B"), "B.up.io", "", "", Allowed{}},
		"past a mutation":                 {publishedAs("A"), publishedAs("B", written("", "", "safe")), "B.up.io", bypasses, "spec.mutation.down", Allowed{}},
		"taking adoption along":           {publishedAs("A", adopts), publishedAs("B"), "B.up.io", bypasses, "spec.adoption", Allowed{}},
		"both adopt":                      {publishedAs("A", adopts), publishedAs("B", adopts), "B.up.io", "", "", Allowed{}},
		"taking replacement along":        {publishedAs("A", func(r *Resource) { r.Replace = true }), publishedAs("B"), "B.up.io", bypasses, "spec.replace", Allowed{}},
		"to a container":                  {publishedAs("A"), publishedAs("B", func(r *Resource) { r.DeletesContents, r.Retain = true, true }), "B.up.io", bypasses, "spec.deletion", Allowed{}},

		"both allow":         {publishedAs("A", allowing(true, true)), publishedAs("B", allowing(true, true)), "B.up.io", "", "", Allowed{true, true}},
		"one allows":         {publishedAs("A", allowing(true, true)), publishedAs("B"), "B.up.io", "", "", Allowed{}},
		"the other one does": {publishedAs("A"), publishedAs("B", allowing(true, true)), "B.up.io", "", "", Allowed{}},
	} {
		t.Run(name, func(t *testing.T) {
			parts := strings.SplitN(test.made, ".", 2)
			made := schema.GroupVersionKind{Kind: parts[0], Group: parts[1]}
			if version, group, ok := strings.Cut(made.Group, "."); ok && strings.HasPrefix(version, "v") {
				made.Version, made.Group = version, group
			}
			allows, err := test.from.CheckConversion([]Resource{test.from, test.other}, made)
			if allows != test.allows {
				t.Errorf("want %+v, got %+v", test.allows, allows)
			}
			refusal, refused := errors.AsType[*policy.DeniedError](err)
			switch {
			case refused != (test.reason != ""):
				t.Errorf("want %q, got %v", test.reason, err)
			case refused && (refusal.Reason != test.reason || !strings.Contains(refusal.Message, test.field)):
				t.Errorf("want %s %q, got %+v", test.reason, test.field, refusal)
			}
		})
	}
}
