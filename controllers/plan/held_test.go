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
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// While kcp may have gone back to an earlier state, no copy is removed or overwritten. Creations and repairs continue.
func TestHeldPlans(t *testing.T) { //nolint:gocyclo // a table and the functions that build it
	owner := ownership.Owner{Hub: "hub", SyncTarget: "target", Sealer: ownership.NewSealer([]byte("key"))}
	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	down := transform.Down{
		Owner: owner, Mailbox: "mailbox", SyncTarget: "florin", Resource: configMaps.GroupResource(), Namespaced: true,
		Hasher: ownership.NewHasher([]byte("key")),
	}
	p := Planner{Down: down}
	source := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"key": "value"},
		"metadata": map[string]any{"namespace": "default", "name": "shop", "uid": "source", "resourceVersion": "100"},
	}}
	spec := transform.SyncSpec{Policy: ownership.PolicyDelete}
	desired, err := down.Desired(source, spec)
	if err != nil {
		t.Fatal(err)
	}
	if desired.Mark.SourceVersion != 100 {
		t.Fatalf("the mark has the version %d", desired.Mark.SourceVersion)
	}
	copyOf := func(name string, change func(*TargetObject)) Copy {
		result := Copy{API: TargetAPI{GroupVersionResource: configMaps, Kind: "ConfigMap"}, Key: types.NamespacedName{Namespace: "default", Name: name}}
		if change == nil {
			return result
		}
		result.Observed = &TargetObject{UID: "uid", Mark: desired.Mark, HasOwnerLabel: true, AppliedFields: []byte(`{"f:data":{"f:key":{}},"f:metadata":{"f:annotations":{"f:synchub.dev/mark":{}},"f:labels":{"f:synchub.dev/owner":{}}}}`)}
		change(result.Observed)
		return result
	}
	same := func(*TargetObject) {}
	other := func(o *TargetObject) { o.Mark.Hash = "other" }
	newer := func(version uint64) func(*TargetObject) {
		return func(o *TargetObject) { o.Mark.Hash, o.Mark.SourceVersion = "other", version }
	}
	present := func(destination Copy, copies ...Copy) DownSnapshot {
		return DownSnapshot{State: Selected, Destination: destination, Copies: copies, Spec: spec}
	}
	absent := func(state State, verified bool) DownSnapshot {
		return DownSnapshot{State: state, Copies: []Copy{copyOf("shop", same)}, AbsenceVerified: verified, MayClaim: true, AllCopiesCached: true}
	}

	for name, test := range map[string]struct {
		down DownSnapshot
		// free is the decision without a hold, and held the remaining operation or the prevented one.
		free, held string
		verify     uint64
	}{
		"created":                         {present(copyOf("shop", nil)), "Create (Missing)", "Create (Missing)", 0},
		"changed":                         {present(copyOf("shop", other)), "Apply (Changed)", "overwrite", 0},
		"a label was removed":             {present(copyOf("shop", func(o *TargetObject) { o.HasOwnerLabel = false })), "Apply (Drifted: [.metadata.labels.synchub.dev/owner])", "Apply (Drifted: [.metadata.labels.synchub.dev/owner])", 0},
		"in sync":                         {present(copyOf("shop", same)), "None (InSync)", "", 0},
		"a copy under another name":       {present(copyOf("shop", same), copyOf("shop", same), copyOf("former", same)), "None (InSync)", "removal", 0},
		"gone, verified":                  {absent(SourceNotFound, true), "Delete (SourceNotFound)", "removal", 0},
		"gone":                            {absent(SourceNotFound, false), "VerifyAbsence (SourceNotFound)", "removal", 0},
		"deselected":                      {absent(Deselected, true), "Delete (Deselected)", "removal", 0},
		"terminating":                     {absent(Terminating, true), "Delete (Terminating)", "removal", 0},
		"a newer copy":                    {present(copyOf("shop", newer(101))), "None (NewerThanSource)", "overwrite", 101},
		"a newer copy, same content":      {present(copyOf("shop", func(o *TargetObject) { o.Mark.SourceVersion = 101 })), "None (NewerThanSource)", "", 101},
		"a newer copy, of another source": {present(copyOf("shop", func(o *TargetObject) { o.Mark.SourceVersion, o.Mark.Source.Name = 101, "other" })), "Conflict (NameTaken)", "Conflict (NameTaken)", 0},
		"a copy of that version":          {present(copyOf("shop", newer(100))), "Apply (Changed)", "overwrite", 0},
		"a copy of unknown version":       {present(copyOf("shop", newer(0))), "Apply (Changed)", "overwrite", 0},
		"a newer copy, of a lost one":     {func() DownSnapshot { s := present(copyOf("shop", newer(101))); s.Lost = 101; return s }(), "Apply (Changed)", "overwrite", 0},
		"a copy of a former mailbox": {present(copyOf("shop", func(o *TargetObject) {
			o.Mark.Mailbox, o.Mark.SourceVersion = "former", 500
		})), "Apply (Changed)", "overwrite", 0},
	} {
		t.Run(name, func(t *testing.T) {
			in := source
			if test.down.State == SourceNotFound {
				in = nil
			}
			s := &Snapshot{Key: types.NamespacedName{Namespace: "default", Name: "shop"}, InMailbox: in, Readable: true, Down: &test.down}
			free := p.PlanDown(s)
			if free.Err != nil || free.Decision.String() != test.free || free.Wants.VerifyVersion != test.verify {
				t.Errorf("free: %s, verify %d, %v", free.Decision, free.Wants.VerifyVersion, free.Err)
			}
			test.down.Held = true
			held := p.PlanDown(s)
			got := ""
			if stop, is := errors.AsType[*HeldError](held.Err); is {
				got = map[bool]string{true: "removal", false: "overwrite"}[stop.Removal]
			}
			for _, operation := range held.Operations {
				got += operation.Decision.String()
			}
			if got != test.held || held.Wants.VerifyAbsence != "" || held.Wants.VerifyVersion != 0 || held.Finalizer == RemoveFinalizer || held.Claims.Action == RemoveClaims {
				t.Errorf("with a hold: %q, want %q: %+v", got, test.held, held)
			}
		})
	}
}
