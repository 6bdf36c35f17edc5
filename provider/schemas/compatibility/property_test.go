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

package compatibility_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/synchub-dev/synchub/provider/schemas/compatibility"
)

// If Compare has no findings, the target accepts and keeps every object that the mailbox stores.
func TestCompatibleObjectsAreAccepted(t *testing.T) {
	const schemas, values = 1500, 12
	r := random{rand.New(rand.NewPCG(12, 2)), t} //nolint:gosec // the same each time, on purpose
	compatible, tried, found := 0, 0, map[compatibility.Reason]int{}
	for range schemas {
		mine := r.object()
		theirs := r.change(mine)
		for r.IntN(3) == 0 {
			theirs = r.change(theirs)
		}
		mailbox, target := parse(t, mine), parse(t, theirs)
		if findings := compatibility.Compare(t.Context(), mailbox, target); len(findings) > 0 {
			for _, finding := range findings {
				found[finding.Reason]++
			}
			continue
		}
		compatible++
		above, below := newServer(t, mailbox), newServer(t, target)
		for range values {
			object := normal(map[string]any{
				"apiVersion": "v1", "kind": "Kind", "metadata": map[string]any{"name": "a"},
				"spec": r.value(mine["properties"].(map[string]any)["spec"].(map[string]any)),
			})
			stored, err := above.accept(object)
			if err != nil {
				continue
			}
			tried++
			if _, err := below.accept(stored); err != nil {
				t.Fatalf("%v\nmailbox %s\ntarget  %s\nobject  %s", err, text(mine), text(theirs), text(stored))
			}
		}
	}
	if compatible < schemas/5 || tried < 2*compatible {
		t.Errorf("only %d of %d pairs were compatible, and only %d objects were tried", compatible, schemas, tried)
	}
	for _, reason := range []compatibility.Reason{
		compatibility.ReasonType, compatibility.ReasonNull, compatibility.ReasonFormat, compatibility.ReasonEnum, compatibility.ReasonRange, compatibility.ReasonMultipleOf,
		compatibility.ReasonLength, compatibility.ReasonPattern, compatibility.ReasonItems, compatibility.ReasonDuplicates, compatibility.ReasonProperties,
		compatibility.ReasonRequired, compatibility.ReasonAlternatives, compatibility.ReasonFieldLost,
	} {
		if found[reason] == 0 {
			t.Errorf("%s was never found", reason)
		}
	}
}

func TestEverySchemaIsCompatibleWithItself(t *testing.T) {
	r := random{rand.New(rand.NewPCG(3, 4)), t} //nolint:gosec // the same each time, on purpose
	for range 400 {
		schema := r.object()
		if findings := compatibility.Compare(t.Context(), parse(t, schema), parse(t, schema)); len(findings) > 0 {
			t.Fatalf("%v\n%s", findings, text(schema))
		}
	}
}

func text(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}
