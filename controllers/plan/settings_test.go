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

package plan_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/mutation"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// sourceWith returns an object with annotations.
func sourceWith(annotations map[string]string) *unstructured.Unstructured {
	source := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	source.SetAnnotations(annotations)
	return source
}

// For drift the most specific setting counts: the object's, then the entries', then the PublishedResource's.
func TestPrecedenceOfDrift(t *testing.T) {
	const unset, repair, report = edgev2alpha1.DriftPolicy(""), edgev2alpha1.DriftRepair, edgev2alpha1.DriftReport
	for published, byPublished := range map[edgev2alpha1.DriftPolicy]bool{repair: false, report: true} {
		for _, entry := range []edgev2alpha1.DriftPolicy{unset, repair, report} {
			for _, object := range []edgev2alpha1.DriftPolicy{unset, repair, report} {
				want := published
				for _, more := range []edgev2alpha1.DriftPolicy{entry, object} {
					if more != unset {
						want = more
					}
				}
				spec := transform.SyncSpec{ReportsDrift: byPublished}
				annotations := map[string]string{}
				if object != unset {
					annotations[edgev2alpha1.AnnotationDrift] = string(object)
				}
				err := plan.ApplySettings(&spec, &selection.Settings{Drift: entry}, sourceWith(annotations))
				if err != nil || spec.ReportsDrift != (want == report) {
					t.Errorf("PublishedResource %s, entry %q, object %q: %t, %v", published, entry, object, spec.ReportsDrift, err)
				}
			}
		}
	}
}

// Ignored fields of all levels add up, and the first one of equal paths counts.
func TestIgnoredFieldsAddUp(t *testing.T) {
	parse := func(paths ...string) []transform.IgnoredField {
		t.Helper()
		ignored, err := transform.ParseIgnored(paths)
		if err != nil {
			t.Fatal(err)
		}
		return ignored
	}
	spec := transform.SyncSpec{IgnoredFields: parse("spec.a", "spec.b")}
	spec.IgnoredFields[1].OnCreate = false
	source := sourceWith(map[string]string{edgev2alpha1.AnnotationIgnoreFields: "spec.c, metadata.labels['x.y/z'] ,spec.b,spec.e, spec.e"})
	if err := plan.ApplySettings(&spec, &selection.Settings{IgnoredFields: parse("spec.c", "spec.d")}, source); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, field := range spec.IgnoredFields {
		got = append(got, fmt.Sprint(field.Path, " ", field.OnCreate))
	}
	if want := []string{"spec.a true", "spec.b false", "spec.c true", "spec.d true", "metadata.labels['x.y/z'] true", "spec.e true"}; !slices.Equal(got, want) {
		t.Errorf("want %v, got %v", want, got)
	}
}

// A wrong annotation is a failure of its object, which names the annotation.
func TestInvalidSettings(t *testing.T) {
	const drift, ignore = edgev2alpha1.AnnotationDrift, edgev2alpha1.AnnotationIgnoreFields
	for name, test := range map[string]struct{ annotation, value, want string }{
		"another word":     {drift, "report", `"report" is neither Repair nor Report`},
		"an empty word":    {drift, "", ""},
		"no path":          {ignore, "spec.a,", `"" is no path`},
		"a wrong path":     {ignore, "spec.a,.b", `".b" is no path`},
		"the name":         {ignore, "metadata.name", "cannot be changed"},
		"the kind":         {ignore, "kind", "cannot be changed"},
		"too many":         {ignore, strings.Repeat("spec.a,", edgev2alpha1.MaxIgnoreFields) + "spec.a", "17 paths, at most 16"},
		"a long path":      {ignore, "spec." + strings.Repeat("a", 252), "a path of 257 bytes"},
		"a long text":      {ignore, strings.Repeat(" ", 2048) + "a", "it has 2049 bytes, at most 2048"},
		"the longest text": {ignore, strings.Repeat(" ", 2047) + "a", ""},
		"spaces":           {ignore, "  ", ""},
		"a long drift":     {drift, strings.Repeat("x", 1000), "is neither"},
		"a list of labels": {ignore, "metadata.labels", ""},
	} {
		spec := transform.SyncSpec{}
		err := plan.ApplySettings(&spec, nil, sourceWith(map[string]string{test.annotation: test.value}))
		invalid, is := errors.AsType[*transform.InvalidObjectError](err)
		switch {
		case test.want == "" && err != nil, test.want != "" && !is:
			t.Errorf("%s: %v", name, err)
		case is && (invalid.Field != "metadata.annotations['"+test.annotation+"']" || !strings.Contains(invalid.Message, test.want) || len(invalid.Message) > 400):
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A workspace's user cannot use an annotation to leave out, or leave to other clients, what an administrator sets on the cluster.
func TestAnnotationsDoNotWeakenAdministrators(t *testing.T) {
	program, err := mutation.Compile([]synchubv1alpha1.MutationStep{{Delete: &synchubv1alpha1.DeleteMutation{Path: "spec.template.spec.hostNetwork"}}})
	if err != nil {
		t.Fatal(err)
	}
	const drift, ignore = edgev2alpha1.AnnotationDrift, edgev2alpha1.AnnotationIgnoreFields
	for name, test := range map[string]struct {
		kind, annotation, value string
		mutation                *mutation.Program
		want                    string
	}{
		"the labels of a Namespace":          {"Namespace", ignore, "metadata.labels", nil, "Pod Security"},
		"drift of a Namespace":               {"Namespace", drift, "Report", nil, "Pod Security"},
		"repair of a Namespace":              {"Namespace", drift, "Repair", program, ""},
		"a mutated field":                    {"Deployment", ignore, "spec.replicas,spec.template.spec.hostNetwork", program, "spec.template.spec.hostNetwork"},
		"all that is around a mutated field": {"Deployment", ignore, "spec.template", program, "cannot be ignored"},
		"another field":                      {"Deployment", ignore, "spec.replicas", program, ""},
		"drift of a mutated kind":            {"Deployment", drift, "Report", program, "spec.drift"},
		"repair of a mutated kind":           {"Deployment", drift, "Repair", program, ""},
		"drift":                              {"Deployment", drift, "Report", nil, ""},
	} {
		source := sourceWith(map[string]string{test.annotation: test.value})
		source.SetKind(test.kind)
		if test.kind == "Namespace" {
			// Another API may have a kind of the same name, which administrators have no labels on.
			another := source.DeepCopy()
			another.SetAPIVersion("example.org/v1")
			if err := plan.ApplySettings(&transform.SyncSpec{}, nil, another); err != nil {
				t.Errorf("%s, of another group: %v", name, err)
			}
		}
		err := plan.ApplySettings(&transform.SyncSpec{Mutation: test.mutation}, nil, source)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// With Report, the decision about an object is the same as with Repair, except for drift, which is only reported.
func TestDecisionsWithReport(t *testing.T) {
	combinations(downColumns, func(values []string) {
		source, observed, tolerated := situation(values)
		want, _ := plan.DecideDown(source, observed, tolerated)
		if source.Desired != nil {
			source.Desired.ReportsDrift = true
		}
		if want.Action == plan.Apply && want.Cause == plan.Drifted && observed.HasOwnerLabel {
			want = plan.Decision{Action: plan.Report, Cause: plan.Drifted, Fields: []string{".spec.kept"}}
		}
		got, err := plan.DecideDown(source, observed, tolerated)
		if err != nil || got.Action != want.Action || got.Cause != want.Cause || !slices.Equal(got.Fields, want.Fields) {
			t.Errorf("%v: want %v, got %v, %v", values, want, got, err)
		}
	})
	if plan.Report.Writes() {
		t.Error("a report writes")
	}
}

// A restored copy is compared like any other one. The hub's own marks are no content.
func TestReportOfRestoredCopies(t *testing.T) {
	source, observed, _ := situation(inSync())
	source.Desired.ReportsDrift, observed.Restored = true, true
	observed.AppliedFields = []byte(`{"f:metadata":{"f:annotations":{"f:theirs":{}},"f:labels":{"f:theirs":{}}}}`)
	source.Desired.Object.SetAnnotations(map[string]string{"synchub.dev/mark": "m", "note": "n", "example.org/synchub.dev": "n"})
	source.Desired.Object.SetLabels(map[string]string{"synchub.dev/owner": "o"})
	got, err := plan.DecideDown(source, observed, nil)
	if want := []string{".metadata.annotations.example.org/synchub.dev", ".metadata.annotations.note", ".spec"}; err != nil || got.Action != plan.Report || !slices.Equal(got.Fields, want) {
		t.Errorf("%v, %v", got, err)
	}
	// Another client owns the marks, and has not changed them.
	observed.AppliedFields = []byte(`{"f:metadata":{"f:annotations":{"f:note":{},"f:example.org/synchub.dev":{}},"f:labels":{"f:theirs":{}}},"f:spec":{"f:kept":{},"f:dropped":{}}}`)
	if got, err := plan.DecideDown(source, observed, nil); err != nil || got.Action != plan.None || got.Cause != plan.InSync {
		t.Errorf("without the marks: %v, %v", got, err)
	}
}
