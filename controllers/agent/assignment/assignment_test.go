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

package assignment

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
)

const mailbox = "2x7fz9k1"

func newSealer(key byte) *ownership.Sealer {
	return ownership.NewSealer(bytes.Repeat([]byte{key}, KeyLength))
}

func newAssignment() *Assignment {
	deployments := publishedresource.API{
		GroupVersionResource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, Kind: "Deployment", Namespaced: true,
		StatusSubresource: true, Exported: true, Versions: []string{"v1"},
	}
	return &Assignment{
		Sequence: 7, Hub: "hub", Mailbox: mailbox, Mode: ModeSync,
		SyncTarget: SyncTarget{Name: "edge", UID: "uid", Spec: edgev2alpha1.SyncTargetSpec{Mode: edgev2alpha1.SyncModeAgent}},
		Rules: Rules{
			Resources: []Resource{{
				API: deployments,
				Published: &Published{Name: "deployments", Spec: synchubv1alpha1.PublishedResourceSpec{
					Resource:     synchubv1alpha1.ResourceDescriptor{Group: "apps", Resource: "deployments", Kind: "Deployment"},
					IgnoreFields: []synchubv1alpha1.IgnoredField{{Path: "spec.replicas"}},
				}},
			}},
			Watched: []schema.GroupVersionResource{deployments.GroupVersionResource},
		},
	}
}

func TestAssignmentArrivesAsItWasSent(t *testing.T) {
	sent := newAssignment()
	content, seal, err := SealAssignment(newSealer(1), sent)
	if err != nil {
		t.Fatal(err)
	}
	again, sameSeal, _ := SealAssignment(newSealer(1), newAssignment())
	if !bytes.Equal(content, again) || seal != sameSeal {
		t.Error("equal assignments have different content, so that each pass would write one")
	}
	arrived, err := OpenAssignment(newSealer(1), mailbox, content, seal)
	if err != nil || !reflect.DeepEqual(sent, arrived) {
		t.Errorf("got %+v, %v", arrived, err)
	}
}

func TestForgedMessagesAreRefused(t *testing.T) {
	content, seal, err := SealAssignment(newSealer(1), newAssignment())
	if err != nil {
		t.Fatal(err)
	}
	report, reportSeal, err := SealReport(newSealer(1), &Report{Mailbox: mailbox, Sequence: 3})
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.Clone(content)
	changed[len(changed)/2]++
	for name, decode := range map[string]func() error{
		"another key":     func() error { _, err := OpenAssignment(newSealer(2), mailbox, content, seal); return err },
		"changed content": func() error { _, err := OpenAssignment(newSealer(1), mailbox, changed, seal); return err },
		"no seal":         func() error { _, err := OpenAssignment(newSealer(1), mailbox, content, ""); return err },
		"another mailbox": func() error { _, err := OpenAssignment(newSealer(1), "other", content, seal); return err },
		"another purpose": func() error {
			_, err := OpenAssignment(newSealer(1), mailbox, []byte(report), reportSeal)
			return err
		},
		"a changed report": func() error { _, err := OpenReport(newSealer(1), mailbox, report+" ", reportSeal); return err },
		"a copied report":  func() error { _, err := OpenReport(newSealer(1), "other", report, reportSeal); return err },
	} {
		if err := decode(); !errors.Is(err, ErrNotSealed) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if found, err := OpenReport(newSealer(1), mailbox, report, reportSeal); err != nil || found.Sequence != 3 {
		t.Errorf("got %v, %v", found, err)
	}
}

func TestMessagesAreBounded(t *testing.T) {
	large := newAssignment()
	noise := make([]byte, 2*maxCompressed)
	_, _ = rand.Read(noise)
	large.SyncTarget.Annotations = map[string]string{"noise": hex.EncodeToString(noise)}
	if _, _, err := SealAssignment(newSealer(1), large); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v", err)
	}
	report := &Report{Mailbox: mailbox, Problem: string(bytes.Repeat([]byte("x"), maxReport))}
	if _, _, err := SealReport(newSealer(1), report); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v", err)
	}
}

// A report is shortened rather than not sent.
func TestLargeReportsAreShortened(t *testing.T) {
	for name, test := range map[string]struct {
		resources, message int
		cut, isReduced     bool
	}{
		"small":          {10, 1000, false, false},
		"long messages":  {100, 4000, true, false},
		"many resources": {4000, 1000, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			message := strings.Repeat("é", test.message/2)
			report := &Report{Mailbox: mailbox}
			report.Status.Conditions = []metav1.Condition{{Type: "Ready", Message: message}}
			for range test.resources {
				report.Status.SyncedResources = append(report.Status.SyncedResources, edgev2alpha1.SyncedResource{Resource: "widgets", Message: message})
			}
			text, seal, err := SealReport(newSealer(1), report)
			if err != nil {
				t.Fatal(err)
			}
			found, err := OpenReport(newSealer(1), mailbox, text, seal)
			if err != nil || len(found.Status.Conditions) != 1 {
				t.Fatalf("got %+v, %v", found, err)
			}
			if got := found.Status.Conditions[0].Message; (got != message) != test.cut || !utf8.ValidString(got) {
				t.Errorf("the message is %q", got)
			}
			if (found.Problem != "") != test.isReduced || (len(found.Status.SyncedResources) == 0) != test.isReduced {
				t.Errorf("%d resources, problem %q", len(found.Status.SyncedResources), found.Problem)
			}
			if report.Status.Conditions[0].Message != message || len(report.Status.SyncedResources) != test.resources {
				t.Error("the agent's own status was changed")
			}
		})
	}
}

// The agent compiles what the hub has compiled, and finds equal resources equal, so that an assignment changes nothing by arriving again.
func TestRulesCompileAsOnTheHub(t *testing.T) {
	compiler, rules := publishedresource.NewCompiler(), newAssignment().Rules
	rules.Resources = append(rules.Resources,
		Resource{API: publishedresource.API{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, Kind: "Secret"}},
		Resource{API: publishedresource.API{GroupVersionResource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}}, Published: &Published{Name: "widgets"}, Unpublishing: true})
	first, err := rules.Compile(compiler)
	if err != nil || len(first) != 3 || !first[1].RelatedOnly || !first[2].Unpublishing || len(first[0].GetRules().IgnoredFields) != 1 {
		t.Fatalf("got %+v, %v", first, err)
	}
	again, _ := rules.Compile(compiler)
	if first[0] != again[0] {
		t.Error("equal rules were compiled to another resource")
	}
	rules.Resources[0].Published = &Published{Name: "bad", Created: metav1.Now(), Spec: synchubv1alpha1.PublishedResourceSpec{IgnoreFields: []synchubv1alpha1.IgnoredField{{Path: "spec..x["}}}}
	rest, err := rules.Compile(compiler)
	if err == nil || len(rest) != 2 {
		t.Errorf("one bad rule must not stop the others: %+v, %v", rest, err)
	}
}

func TestRulesStoreNotifiesOfChangesOnly(t *testing.T) {
	store, notified := &RulesStore{}, 0
	store.SetCRDs([]CRD{{PublishedResource: "widgets"}})
	if _, version := store.Rules(); version != 0 {
		t.Error("rules are known before there are any")
	}
	store.Changed.Subscribe(t.Context(), func(struct{}) { notified++ })
	store.SetResources(newAssignment().Rules)
	store.SetResources(newAssignment().Rules)
	if rules, version := store.Rules(); version == 0 || len(rules.CRDs) != 1 || notified != 1 {
		t.Errorf("notified %d times", notified)
	}
}

// A filter of a later version that an agent ignored would let more objects go down than is meant to.
func TestRulesWithUnknownFieldsAreLeftOut(t *testing.T) {
	rules := newAssignment().Rules
	rules.Resources = append(rules.Resources, Resource{API: publishedresource.API{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, Kind: "Secret"}})
	text, err := json.Marshal(rules)
	if err != nil {
		t.Fatal(err)
	}
	later := bytes.Replace(text, []byte(`"spec":{`), []byte(`"spec":{"laterFilter":"x",`), 1)
	if bytes.Equal(text, later) {
		t.Fatalf("no spec in %s", text)
	}
	for content, left := range map[string]int{string(text): 2, string(later): 1} {
		var arrived Rules
		if err := json.Unmarshal([]byte(content), &arrived); err != nil {
			t.Fatal(err)
		}
		compiled, err := arrived.Compile(publishedresource.NewCompiler())
		if len(compiled) != left || (err != nil) != (left == 1) || err != nil && !strings.Contains(err.Error(), "laterFilter") {
			t.Errorf("got %v, %v", compiled, err)
		}
	}
}

// A hub that has published nothing has rules too: an agent must not wait for others.
func TestRulesOfAHubThatPublishesNothing(t *testing.T) {
	store, notified := &RulesStore{}, 0
	store.Changed.Subscribe(t.Context(), func(struct{}) { notified++ })
	store.SetResources(Rules{})
	if _, version := store.Rules(); version == 0 || notified != 1 {
		t.Errorf("version %d, notified %d times", version, notified)
	}
}

// The compiler keeps no rules that are gone: a hub that renames its PublishedResources for ever must not fill an agent's memory.
func TestCompiledRulesThatAreGoneAreForgotten(t *testing.T) {
	compiler, rules := publishedresource.NewCompiler(), newAssignment().Rules
	compile := func(rules Rules) plan.Resource {
		t.Helper()
		resources, err := rules.Compile(compiler)
		if err != nil {
			t.Fatal(err)
		}
		if len(resources) == 0 {
			return plan.Resource{}
		}
		return resources[0]
	}
	first := compile(rules)
	compile(Rules{})
	if compile(rules) == first {
		t.Error("the compiled rules were kept")
	}
}

// A schema prunes what the mailbox does not keep. Without one nothing is pruned.
func TestCheckedSchemas(t *testing.T) {
	widgets, gadgets := schema.GroupResource{Group: "example.com", Resource: "widgets"}, schema.GroupResource{Group: "example.com", Resource: "gadgets"}
	rules := Rules{Schemas: []Schema{
		{Resource: widgets, Name: "w1", Version: "v1", WarnOnly: true, OpenAPI: &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Type: "object"}}}},
		{Resource: gadgets, Name: "g1", Version: "v2"},
	}}
	checked := rules.CheckedSchemas()
	if got := checked[widgets]; got.Kept == nil || got.Name != "w1" || got.Version != "v1" || !got.WarnOnly || got.OpenAPI == nil {
		t.Errorf("got %+v", got)
	}
	if got := checked[gadgets]; got.Kept != nil || got.Name != "g1" || got.WarnOnly {
		t.Errorf("got %+v", got)
	}
}

// Whoever has an agent's key can seal anything. The hub does not even verify a report that is larger than one can be.
func TestLargeReportsAreRefused(t *testing.T) {
	sealer := ownership.NewSealer(bytes.Repeat([]byte{1}, KeyLength))
	text := `{"mailbox":"` + mailbox + `"` + strings.Repeat(" ", maxReport) + `}`
	if _, err := OpenReport(sealer, mailbox, text, sealer.SealText(purposeReport, text)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v", err)
	}
	small := strings.ReplaceAll(text, " ", "")
	if _, err := OpenReport(sealer, mailbox, small, sealer.SealText(purposeReport, small)); err != nil {
		t.Errorf("got %v", err)
	}
}
