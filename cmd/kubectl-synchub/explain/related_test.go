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
	"bytes"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/explain"
	"github.com/synchub-dev/synchub/test/fixtures"
)

func TestExplainNamesRelatedObjects(t *testing.T) {
	facts := inStep(t)
	facts.Published.Value = []synchubv1alpha1.PublishedResource{fixtures.Decode[synchubv1alpha1.PublishedResource](t, `
metadata: {name: widgets}
spec:
  resource: {group: example.dev, resource: widgets, version: v1}
  related:
  - {identifier: password, origin: Mailbox, resource: {version: v1, resource: secrets}, object: {reference: {path: spec.secret}}}
  - {identifier: settings, origin: Mailbox, resource: {version: v1, resource: configmaps}, object: {selector: {matchLabels: {app: web}}}}
  - {identifier: result, origin: Target, resource: {version: v1, resource: configmaps}, object: {owner: {controllerOnly: true}}}
status: {conditions: [{type: Ready, status: "True"}]}`)}
	facts.Object.Value.Object["spec"].(map[string]any)["secret"] = "key"
	got := explain.Explain(facts)
	if len(got.Related) != 3 || len(got.Related[0].Objects) != 1 || got.Related[0].Objects[0] != (types.NamespacedName{Namespace: "shop", Name: "key"}) || got.Related[0].By != "widgets/password" {
		t.Fatalf("got %+v", got.Related)
	}
	var out bytes.Buffer
	if err := got.Print(&out); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	want := "RELATED FROM OBJECTS secrets Mailbox shop/key configmaps Mailbox objects with the labels app=web, in shop configmaps Target objects that it owns, in shop "
	if !strings.Contains(text, want) {
		t.Errorf("got\n%s", out.String())
	}
	facts.Object.Value, facts.Target.Value = nil, nil
	if got := explain.Explain(facts); len(got.Related) != 0 {
		t.Errorf("without the object: %+v", got.Related)
	}
}
