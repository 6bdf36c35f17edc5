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

package crd_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/syncmanager/crd"
	"github.com/synchub-dev/synchub/test/fixtures"
)

type decideCase struct {
	// version defaults to v2.
	version string
	// wanted changes the source, and observed changes the target's CRD.
	wanted, observed func(*apiextensionsv1.CustomResourceDefinition)

	action            crd.Action
	reason, message   string
	usable, installed bool
}

// withMark returns a function that changes the mark of a CRD and seals it again.
func withMark(change func(*ownership.Mark)) func(*apiextensionsv1.CustomResourceDefinition) {
	return func(object *apiextensionsv1.CustomResourceDefinition) {
		mark, err := ownership.ParseMark(object.Annotations[ownership.MarkAnnotation])
		if err != nil {
			panic(err)
		}
		change(&mark)
		object.Annotations[ownership.MarkAnnotation] = testOwner.Seal(mark)
	}
}

func addVersion(name string, served bool) func(*apiextensionsv1.CustomResourceDefinition) {
	return func(object *apiextensionsv1.CustomResourceDefinition) {
		added := object.Spec.Versions[0].DeepCopy()
		added.Name, added.Served, added.Storage = name, served, false
		object.Spec.Versions = append(object.Spec.Versions, *added)
	}
}

func notEstablished(object *apiextensionsv1.CustomResourceDefinition) {
	object.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
		{Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionFalse, Reason: "KindConflict", Message: `"Widget" is already in use`},
		{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionFalse},
	}
}

func both(changes ...func(*apiextensionsv1.CustomResourceDefinition)) func(*apiextensionsv1.CustomResourceDefinition) {
	return func(object *apiextensionsv1.CustomResourceDefinition) {
		for _, change := range changes {
			change(object)
		}
	}
}

func notMarked(object *apiextensionsv1.CustomResourceDefinition) { object.Annotations = nil }

func deleted(object *apiextensionsv1.CustomResourceDefinition) {
	object.DeletionTimestamp = new(metav1.NewTime(time.Unix(1, 0)))
}

var decideCases = map[string]decideCase{
	"in sync": {action: crd.ActionNone, reason: crd.ReasonInSync, message: "serves", usable: true, installed: true},
	"in sync, with others' labels, annotations and status": {
		observed: func(object *apiextensionsv1.CustomResourceDefinition) {
			object.Labels["app"], object.Annotations["note"] = "x", "y"
			object.Finalizers = []string{"customresourcecleanup.apiextensions.k8s.io"}
		},
		action: crd.ActionNone, reason: crd.ReasonInSync, usable: true, installed: true,
	},
	"in sync, but without the version asked for": {
		version: "v3", action: crd.ActionNone, reason: crd.ReasonVersionNotServed, message: `"v3"`, installed: true,
	},
	"not established": {
		observed: notEstablished, action: crd.ActionWait, reason: crd.ReasonNamesNotAccepted, message: `"Widget" is already in use (KindConflict)`, installed: true,
	},
	"just created": {
		observed: func(object *apiextensionsv1.CustomResourceDefinition) { object.Status.Conditions = nil },
		action:   crd.ActionWait, reason: crd.ReasonNotEstablished, installed: true,
	},
	"being deleted":                    {observed: deleted, action: crd.ActionWait, reason: crd.ReasonTerminating, message: "gone", installed: true},
	"somebody else's, being deleted":   {observed: both(notMarked, deleted), action: crd.ActionWait, reason: crd.ReasonTerminating},
	"newer, changed and being deleted": {observed: both(addVersion("v9", true), deleted), action: crd.ActionWait, reason: crd.ReasonTerminating, installed: true},

	"another schema": {
		wanted: func(object *apiextensionsv1.CustomResourceDefinition) {
			object.Spec.Versions[1].Schema.OpenAPIV3Schema.Properties["more"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
		},
		action: crd.ActionUpdate, reason: crd.ReasonChanged, usable: true, installed: true,
	},
	"a field fewer": {
		wanted: func(object *apiextensionsv1.CustomResourceDefinition) {
			delete(object.Spec.Versions[1].Schema.OpenAPIV3Schema.Properties, "size")
		},
		action: crd.ActionUpdate, reason: crd.ReasonChanged, usable: true, installed: true,
	},
	"another short name":       {wanted: func(object *apiextensionsv1.CustomResourceDefinition) { object.Spec.Names.ShortNames = []string{"wi"} }, action: crd.ActionUpdate, reason: crd.ReasonChanged, usable: true, installed: true},
	"one more version":         {wanted: addVersion("v3", true), action: crd.ActionUpdate, reason: crd.ReasonChanged, usable: true, installed: true},
	"a version served no more": {wanted: func(object *apiextensionsv1.CustomResourceDefinition) { object.Spec.Versions[0].Served = false }, action: crd.ActionUpdate, reason: crd.ReasonChanged, usable: true, installed: true},
	"another version stored": {
		wanted: func(object *apiextensionsv1.CustomResourceDefinition) {
			object.Spec.Versions[0].Storage, object.Spec.Versions[1].Storage = true, false
		},
		action: crd.ActionUpdate, reason: crd.ReasonChanged, usable: true, installed: true,
	},
	"not established and another schema": {
		wanted: addVersion("v3", true), observed: notEstablished, action: crd.ActionUpdate, reason: crd.ReasonChanged, installed: true,
	},
	"installed for a PublishedResource of former times": {
		observed: withMark(func(mark *ownership.Mark) { mark.Source.Name, mark.Source.UID = "former", "former" }),
		action:   crd.ActionUpdate, reason: crd.ReasonChanged, usable: true, installed: true,
	},

	"somebody else's": {
		observed: notMarked, action: crd.ActionForeign, reason: crd.ReasonNotOwned, message: "used as it is", usable: true,
	},
	"somebody else's, with our label": {
		observed: func(object *apiextensionsv1.CustomResourceDefinition) {
			delete(object.Annotations, ownership.MarkAnnotation)
		},
		action: crd.ActionForeign, reason: crd.ReasonNotOwned, usable: true,
	},
	"somebody else's, of other versions": {
		version: "v3", observed: notMarked, action: crd.ActionForeign, reason: crd.ReasonVersionNotServed, message: `not the hub's: somebody else installed it. The definition does not serve version "v3"`,
	},
	"somebody else's, not established": {
		observed: both(notMarked, notEstablished), action: crd.ActionForeign, reason: crd.ReasonNamesNotAccepted, message: "not the hub's",
	},
	"somebody else's and newer": {
		observed: both(notMarked, addVersion("v3", true)), action: crd.ActionForeign, reason: crd.ReasonNotOwned, usable: true,
	},
	"another hub's": {
		observed: withMark(func(mark *ownership.Mark) { mark.Hub = "another" }),
		action:   crd.ActionForeign, reason: crd.ReasonNotOwned, message: "another hub", usable: true,
	},
	"installed for a former SyncTarget": {
		observed: withMark(func(mark *ownership.Mark) { mark.SyncTarget = "former" }),
		action:   crd.ActionForeign, reason: crd.ReasonNotOwned, usable: true,
	},
	"placed from a mailbox": {
		observed: both(
			withMark(func(mark *ownership.Mark) {
				mark.Source = ownership.Source{Group: apiextensionsv1.GroupName, Resource: "customresourcedefinitions", Name: mark.Self.Name}
			}),
			func(object *apiextensionsv1.CustomResourceDefinition) {
				object.Labels = map[string]string{ownership.OwnerLabel: testOwner.LabelValue()}
			}),
		action: crd.ActionForeign, reason: crd.ReasonNotOwned, message: "mailbox", usable: true,
	},
	"a copy of another definition of ours": {
		observed: withMark(func(mark *ownership.Mark) { mark.Self.Name = "others.tests.example.org" }),
		action:   crd.ActionForeign, reason: crd.ReasonNotOwned, message: "copied", usable: true,
	},
	"of a hub of another version": {
		observed: withMark(func(mark *ownership.Mark) { mark.Version = ownership.MarkVersion + 1 }),
		action:   crd.ActionForeign, reason: crd.ReasonNotOwned, message: "version 3", usable: true,
	},
	"with an illegible mark": {
		observed: func(object *apiextensionsv1.CustomResourceDefinition) {
			object.Annotations[ownership.MarkAnnotation] = "{"
		},
		action: crd.ActionForeign, reason: crd.ReasonNotOwned, usable: true,
	},
	"without our label": {
		observed: func(object *apiextensionsv1.CustomResourceDefinition) {
			delete(object.Labels, ownership.InstalledByLabel)
		},
		action: crd.ActionForeign, reason: crd.ReasonNotOwned, message: ownership.InstalledByLabel, usable: true,
	},

	"a version that is newer": {
		observed: addVersion("v3", true), action: crd.ActionNewer, reason: crd.ReasonNewer, message: "v3", usable: true, installed: true,
	},
	"a version that is newer but not served": {
		observed: addVersion("v3", false), action: crd.ActionNewer, reason: crd.ReasonNewer, usable: true, installed: true,
	},
	"a version that is older but served": {
		observed: addVersion("v1alpha1", true), action: crd.ActionNewer, reason: crd.ReasonNewer, message: "v1alpha1", usable: true, installed: true,
	},
	"a version that is older and not served": {
		observed: addVersion("v1alpha1", false), action: crd.ActionUpdate, reason: crd.ReasonChanged, usable: true, installed: true,
	},
	"a version that objects were stored in": {
		observed: func(object *apiextensionsv1.CustomResourceDefinition) {
			object.Status.StoredVersions = []string{"v1alpha1", "v2"}
		},
		action: crd.ActionNewer, reason: crd.ReasonNewer, message: "v1alpha1", usable: true, installed: true,
	},
	"newer, without the version asked for": {
		version: "v4", observed: both(addVersion("v3", true), addVersion("v10", true)), action: crd.ActionNewer, reason: crd.ReasonVersionNotServed, message: "v3, v10", installed: true,
	},
	"newer, with another schema": {
		wanted:   func(object *apiextensionsv1.CustomResourceDefinition) { object.Spec.Names.ShortNames = []string{"wi"} },
		observed: addVersion("v3", true), action: crd.ActionNewer, reason: crd.ReasonNewer, usable: true, installed: true,
	},
}

func TestDecide(t *testing.T) {
	t.Parallel()
	for name, c := range decideCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			source := newCRD("widgets", "Widget", "v1", "v2")
			observed := established(desired(t, source))
			if c.observed != nil {
				c.observed(observed)
			}
			if c.wanted != nil {
				c.wanted(source)
			}
			version := c.version
			if version == "" {
				version = "v2"
			}
			ours := desired(t, source)
			before := []any{ours.DeepCopy(), observed.DeepCopy()}
			decision := crd.Decide(ours, observed, testOwner, version)
			g.Expect([]any{ours, observed}).To(Equal(before), "it changes nothing")
			g.Expect(decision.Action).To(Equal(c.action), "%+v", decision)
			g.Expect(decision.Reason).To(Equal(c.reason), "%+v", decision)
			g.Expect(decision.Message).To(And(ContainSubstring(c.message), HaveSuffix("."), Not(ContainSubstring(".."))))
			g.Expect(decision.Usable).To(Equal(c.usable))
			g.Expect(decision.Installed).To(Equal(c.installed))
		})
	}
	g := NewWithT(t)
	missing := crd.Decide(desired(t, newCRD("widgets", "Widget", "v1")), nil, testOwner, "v1")
	g.Expect(missing.Action).To(Equal(crd.ActionInstall))
	g.Expect(missing.Reason).To(Equal(crd.ReasonMissing))
	g.Expect(missing.Usable || missing.Installed).To(BeFalse())
}

// Equal specs are equal in any notation.
func TestDecideComparesByValue(t *testing.T) {
	t.Parallel()
	const manifest = `
metadata: {name: widgets.tests.example.org}
spec:
  group: tests.example.org
  scope: Namespaced
  names: {plural: widgets, kind: WidgetNAMES}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, default: DEFAULT, properties: {a: {type: number}, b: {type: number, enum: ENUM}}}}}}
`
	for name, c := range map[string]struct {
		ours, theirs []string
		same         bool
	}{
		"the order of keys":       {[]string{"DEFAULT", `{"a": 1, "b": 2}`}, []string{"DEFAULT", `{"b": 2, "a": 1}`}, true},
		"the form of numbers":     {[]string{"DEFAULT", `{"a": 1.0, "b": 2}`}, []string{"DEFAULT", `{"a": 1, "b": 2e0}`}, true},
		"other numbers":           {[]string{"DEFAULT", `{"a": 1.5, "b": 2}`}, []string{"DEFAULT", `{"a": 1, "b": 2}`}, false},
		"no default":              {[]string{"DEFAULT", `null`}, []string{"default: DEFAULT, ", ""}, true},
		"no enumeration":          {[]string{"ENUM", `[]`}, []string{", enum: ENUM", ""}, true},
		"the order of values":     {[]string{"ENUM", `[1, 2]`}, []string{"ENUM", `[2, 1]`}, false},
		"names that are the rule": {nil, []string{"WidgetNAMES", "Widget, listKind: WidgetList, singular: widget"}, true},
		"names that are not":      {nil, []string{"WidgetNAMES", "Widget, listKind: Widgets"}, false},
		"no conversion":           {nil, []string{"scope:", "conversion: {strategy: None}\n  scope:"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			form := func(change []string) *apiextensionsv1.CustomResourceDefinition {
				rest := []string{"NAMES", "", "DEFAULT", "{}", "ENUM", "[1]"}
				return fixtures.Decode[*apiextensionsv1.CustomResourceDefinition](t, strings.NewReplacer(rest...).Replace(strings.NewReplacer(change...).Replace(manifest)))
			}
			ours, source := desired(t, form(c.ours)), form(c.theirs)
			observed := established(ours)
			observed.Spec = source.Spec
			expected := crd.ActionUpdate
			if c.same {
				expected = crd.ActionNone
			}
			NewWithT(t).Expect(crd.Decide(ours, observed, testOwner, "v1").Action).To(Equal(expected))
		})
	}
}
