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

package definition_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/synchub-dev/synchub/controllers/definition"
	"github.com/synchub-dev/synchub/controllers/sync/ownership"
)

type decideCase struct {
	// version is v2 unless said.
	version string
	// wanted changes the source, observed what the target has of it.
	wanted, observed func(*apiextensionsv1.CustomResourceDefinition)

	action            definition.Action
	reason, message   string
	usable, installed bool
}

// remarked returns what puts a mark on a definition that differs from ours.
func remarked(change func(*ownership.Mark)) func(*apiextensionsv1.CustomResourceDefinition) {
	return func(crd *apiextensionsv1.CustomResourceDefinition) {
		mark, err := ownership.ParseMark(crd.Annotations[ownership.MarkAnnotation])
		if err != nil {
			panic(err)
		}
		change(&mark)
		crd.Annotations[ownership.MarkAnnotation] = us.Seal(mark)
	}
}

func addVersion(name string, served bool) func(*apiextensionsv1.CustomResourceDefinition) {
	return func(crd *apiextensionsv1.CustomResourceDefinition) {
		added := crd.Spec.Versions[0].DeepCopy()
		added.Name, added.Served, added.Storage = name, served, false
		crd.Spec.Versions = append(crd.Spec.Versions, *added)
	}
}

func notEstablished(crd *apiextensionsv1.CustomResourceDefinition) {
	crd.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
		{Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionFalse, Reason: "KindConflict", Message: `"Widget" is already in use`},
		{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionFalse},
	}
}

func both(changes ...func(*apiextensionsv1.CustomResourceDefinition)) func(*apiextensionsv1.CustomResourceDefinition) {
	return func(crd *apiextensionsv1.CustomResourceDefinition) {
		for _, change := range changes {
			change(crd)
		}
	}
}

func notMarked(crd *apiextensionsv1.CustomResourceDefinition) { crd.Annotations = nil }

func deleted(crd *apiextensionsv1.CustomResourceDefinition) {
	crd.DeletionTimestamp = new(metav1.NewTime(time.Unix(1, 0)))
}

var decideCases = map[string]decideCase{
	"in step": {action: definition.None, reason: definition.ReasonInStep, message: "serves", usable: true, installed: true},
	"in step, with others' labels, annotations and status": {
		observed: func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Labels["app"], crd.Annotations["note"] = "x", "y"
			crd.Finalizers = []string{"customresourcecleanup.apiextensions.k8s.io"}
		},
		action: definition.None, reason: definition.ReasonInStep, usable: true, installed: true,
	},
	"in step, but without the version asked for": {
		version: "v3", action: definition.None, reason: definition.ReasonVersionNotServed, message: `"v3"`, installed: true,
	},
	"not established": {
		observed: notEstablished, action: definition.Wait, reason: definition.ReasonNotEstablished, message: `"Widget" is already in use (KindConflict)`, installed: true,
	},
	"just created": {
		observed: func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Status.Conditions = nil },
		action:   definition.Wait, reason: definition.ReasonNotEstablished, installed: true,
	},
	"being deleted":                    {observed: deleted, action: definition.Wait, reason: definition.ReasonTerminating, message: "gone", installed: true},
	"somebody else's, being deleted":   {observed: both(notMarked, deleted), action: definition.Wait, reason: definition.ReasonTerminating},
	"newer, changed and being deleted": {observed: both(addVersion("v9", true), deleted), action: definition.Wait, reason: definition.ReasonTerminating, installed: true},

	"another schema": {
		wanted: func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Versions[1].Schema.OpenAPIV3Schema.Properties["more"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
		},
		action: definition.Update, reason: definition.ReasonChanged, usable: true, installed: true,
	},
	"a field fewer": {
		wanted: func(crd *apiextensionsv1.CustomResourceDefinition) {
			delete(crd.Spec.Versions[1].Schema.OpenAPIV3Schema.Properties, "size")
		},
		action: definition.Update, reason: definition.ReasonChanged, usable: true, installed: true,
	},
	"another short name":       {wanted: func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Names.ShortNames = []string{"wi"} }, action: definition.Update, reason: definition.ReasonChanged, usable: true, installed: true},
	"one more version":         {wanted: addVersion("v3", true), action: definition.Update, reason: definition.ReasonChanged, usable: true, installed: true},
	"a version served no more": {wanted: func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions[0].Served = false }, action: definition.Update, reason: definition.ReasonChanged, usable: true, installed: true},
	"another version stored": {
		wanted: func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Versions[0].Storage, crd.Spec.Versions[1].Storage = true, false
		},
		action: definition.Update, reason: definition.ReasonChanged, usable: true, installed: true,
	},
	"not established and another schema": {
		wanted: addVersion("v3", true), observed: notEstablished, action: definition.Update, reason: definition.ReasonChanged, installed: true,
	},
	"installed for a PublishedResource of former times": {
		observed: remarked(func(mark *ownership.Mark) { mark.Source.Name, mark.Source.UID = "former", "former" }),
		action:   definition.Update, reason: definition.ReasonChanged, usable: true, installed: true,
	},

	"somebody else's": {
		observed: notMarked, action: definition.Foreign, reason: definition.ReasonNotOwned, message: "used as it is", usable: true,
	},
	"somebody else's, with our label": {
		observed: func(crd *apiextensionsv1.CustomResourceDefinition) { delete(crd.Annotations, ownership.MarkAnnotation) },
		action:   definition.Foreign, reason: definition.ReasonNotOwned, usable: true,
	},
	"somebody else's, of other versions": {
		version: "v3", observed: notMarked, action: definition.Foreign, reason: definition.ReasonVersionNotServed, message: `not the hub's: somebody else installed it. The definition does not serve version "v3"`,
	},
	"somebody else's, not established": {
		observed: both(notMarked, notEstablished), action: definition.Foreign, reason: definition.ReasonNotEstablished, message: "not the hub's",
	},
	"somebody else's and newer": {
		observed: both(notMarked, addVersion("v3", true)), action: definition.Foreign, reason: definition.ReasonNotOwned, usable: true,
	},
	"another hub's": {
		observed: remarked(func(mark *ownership.Mark) { mark.Hub = "another" }),
		action:   definition.Foreign, reason: definition.ReasonNotOwned, message: "another hub", usable: true,
	},
	"installed for a former SyncTarget": {
		observed: remarked(func(mark *ownership.Mark) { mark.SyncTarget = "former" }),
		action:   definition.Foreign, reason: definition.ReasonNotOwned, usable: true,
	},
	"placed from a mailbox": {
		observed: both(
			remarked(func(mark *ownership.Mark) {
				mark.Source = ownership.Source{Group: apiextensionsv1.GroupName, Resource: "customresourcedefinitions", Name: mark.Self.Name}
			}),
			func(crd *apiextensionsv1.CustomResourceDefinition) {
				crd.Labels = map[string]string{ownership.OwnerLabel: us.LabelValue()}
			}),
		action: definition.Foreign, reason: definition.ReasonNotOwned, message: "mailbox", usable: true,
	},
	"a copy of another definition of ours": {
		observed: remarked(func(mark *ownership.Mark) { mark.Self.Name = "others.tests.example.org" }),
		action:   definition.Foreign, reason: definition.ReasonNotOwned, message: "copied", usable: true,
	},
	"of a hub of another version": {
		observed: remarked(func(mark *ownership.Mark) { mark.Version = ownership.MarkVersion + 1 }),
		action:   definition.Foreign, reason: definition.ReasonNotOwned, message: "version 3", usable: true,
	},
	"with an illegible mark": {
		observed: func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Annotations[ownership.MarkAnnotation] = "{" },
		action:   definition.Foreign, reason: definition.ReasonNotOwned, usable: true,
	},
	"without our label": {
		observed: func(crd *apiextensionsv1.CustomResourceDefinition) { delete(crd.Labels, definition.InstalledByLabel) },
		action:   definition.Foreign, reason: definition.ReasonNotOwned, message: definition.InstalledByLabel, usable: true,
	},

	"a version that is newer": {
		observed: addVersion("v3", true), action: definition.Newer, reason: definition.ReasonNewer, message: "v3", usable: true, installed: true,
	},
	"a version that is newer but not served": {
		observed: addVersion("v3", false), action: definition.Newer, reason: definition.ReasonNewer, usable: true, installed: true,
	},
	"a version that is older but served": {
		observed: addVersion("v1alpha1", true), action: definition.Newer, reason: definition.ReasonNewer, message: "v1alpha1", usable: true, installed: true,
	},
	"a version that is older and not served": {
		observed: addVersion("v1alpha1", false), action: definition.Update, reason: definition.ReasonChanged, usable: true, installed: true,
	},
	"a version that objects were stored in": {
		observed: func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Status.StoredVersions = []string{"v1alpha1", "v2"}
		},
		action: definition.Newer, reason: definition.ReasonNewer, message: "v1alpha1", usable: true, installed: true,
	},
	"newer, without the version asked for": {
		version: "v4", observed: both(addVersion("v3", true), addVersion("v10", true)), action: definition.Newer, reason: definition.ReasonVersionNotServed, message: "v3, v10", installed: true,
	},
	"newer, with another schema": {
		wanted:   func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Names.ShortNames = []string{"wi"} },
		observed: addVersion("v3", true), action: definition.Newer, reason: definition.ReasonNewer, usable: true, installed: true,
	},
}

func TestDecide(t *testing.T) {
	t.Parallel()
	for name, c := range decideCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			source := crd("widgets", "Widget", "v1", "v2")
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
			decision := definition.Decide(ours, observed, us, version)
			g.Expect([]any{ours, observed}).To(Equal(before), "it changes nothing")
			g.Expect(decision.Action).To(Equal(c.action), "%+v", decision)
			g.Expect(decision.Reason).To(Equal(c.reason), "%+v", decision)
			g.Expect(decision.Message).To(And(ContainSubstring(c.message), HaveSuffix("."), Not(ContainSubstring(".."))))
			g.Expect(decision.Usable).To(Equal(c.usable))
			g.Expect(decision.Installed).To(Equal(c.installed))
		})
	}
	g := NewWithT(t)
	missing := definition.Decide(desired(t, crd("widgets", "Widget", "v1")), nil, us, "v1")
	g.Expect(missing.Action).To(Equal(definition.Install))
	g.Expect(missing.Reason).To(Equal(definition.ReasonMissing))
	g.Expect(missing.Usable || missing.Installed).To(BeFalse())
}

// However the same is written, it is the same.
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
				return parse(t, strings.NewReplacer(rest...).Replace(strings.NewReplacer(change...).Replace(manifest)))
			}
			ours, source := desired(t, form(c.ours)), form(c.theirs)
			observed := established(ours)
			observed.Spec = source.Spec
			expected := definition.Update
			if c.same {
				expected = definition.None
			}
			NewWithT(t).Expect(definition.Decide(ours, observed, us, "v1").Action).To(Equal(expected))
		})
	}
}
