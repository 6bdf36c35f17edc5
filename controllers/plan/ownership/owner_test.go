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

package ownership_test

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

func TestVerify(t *testing.T) {
	otherHub, otherTarget := owner, owner
	otherHub.Hub, otherTarget.SyncTarget = "another", "another"
	up := markOf(owner, self)
	up.Direction = ownership.DirectionUp
	sideways := markOf(owner, self)
	sideways.Direction = "sideways"
	foreignUp := markOf(otherHub, self)
	foreignUp.Direction = ownership.DirectionUp
	// The objects of a Deployment's controller have the Deployment's annotations.
	replicaSet := ownership.Self{Group: "apps", Kind: "ReplicaSet", Namespace: "shop", Name: "web-5d9"}
	marked := func(mark ownership.Mark) map[string]string {
		return map[string]string{"a": "b", ownership.MarkAnnotation: owner.Seal(mark)}
	}
	for name, test := range map[string]struct {
		annotations map[string]string
		self        ownership.Self
		want        error
	}{
		"the owner's":                 {marked(markOf(owner, self)), self, nil},
		"no annotations":              {nil, self, ownership.ErrUnmarked},
		"no mark":                     {map[string]string{"a": "b"}, self, ownership.ErrUnmarked},
		"ensured is not owned":        {map[string]string{ownership.EnsuredAnnotation: owner.EnsuredValue(self)}, self, ownership.ErrUnmarked},
		"another hub":                 {marked(markOf(otherHub, self)), self, ownership.ErrForeign},
		"another SyncTarget":          {marked(markOf(otherTarget, self)), self, ownership.ErrForeign},
		"copied to a child":           {marked(markOf(owner, self)), replicaSet, ownership.ErrCopied},
		"copied to another group":     {marked(markOf(owner, self)), ownership.Self{Group: "extensions", Kind: self.Kind, Namespace: self.Namespace, Name: self.Name}, ownership.ErrCopied},
		"copied to another kind":      {marked(markOf(owner, self)), ownership.Self{Group: self.Group, Kind: "StatefulSet", Namespace: self.Namespace, Name: self.Name}, ownership.ErrCopied},
		"copied to another namespace": {marked(markOf(owner, self)), ownership.Self{Group: self.Group, Kind: self.Kind, Namespace: "shop2", Name: self.Name}, ownership.ErrCopied},
		"copied to another name":      {marked(markOf(owner, self)), ownership.Self{Group: self.Group, Kind: self.Kind, Namespace: self.Namespace, Name: "web2"}, ownership.ErrCopied},
		"of what came up":             {marked(up), self, ownership.ErrCopied},
		"of what another hub's up":    {marked(foreignUp), self, ownership.ErrForeign},
		"of no known direction":       {marked(sideways), self, ownership.ErrCopied},
		"of a newer hub":              {map[string]string{ownership.MarkAnnotation: `{"v":3}`}, self, ownership.ErrUnknownVersion},
	} {
		t.Run(name, func(t *testing.T) {
			mark, err := owner.Verify(test.annotations, test.self)
			if !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
				t.Fatalf("want %v, got %v", test.want, err)
			}
			if want := markOf(owner, self); err == nil && mark != want {
				t.Errorf("want %+v, got %+v", want, mark)
			}
			if err != nil && mark != (ownership.Mark{}) {
				t.Errorf("returned %+v with the error", mark)
			}
		})
	}
	if _, err := owner.Verify(map[string]string{ownership.MarkAnnotation: "{"}, self); err == nil {
		t.Error("accepted a mark that cannot be read")
	}
}

// On each side, only marks of objects synced to this side count: a user may copy an object from one side to the other.
func TestVerifyUp(t *testing.T) {
	down, up := markOf(owner, self), markOf(owner, self)
	up.Direction = ownership.DirectionUp
	for _, test := range []struct {
		name   string
		verify func(map[string]string, ownership.Self) (ownership.Mark, error)
		mark   ownership.Mark
		self   ownership.Self
		want   error
	}{
		{"up in a mailbox", owner.VerifyUp, up, self, nil},
		{"down in a mailbox", owner.VerifyUp, down, self, ownership.ErrCopied},
		{"up in a mailbox, copied", owner.VerifyUp, up, ownership.Self{Kind: "Pod"}, ownership.ErrCopied},
		{"up in a mailbox, for another", ownership.Owner{Hub: owner.Hub}.VerifyUp, up, self, ownership.ErrForeign},
		{"down on a target", owner.Verify, down, self, nil},
		{"up on a target", owner.Verify, up, self, ownership.ErrCopied},
	} {
		mark, err := test.verify(map[string]string{ownership.MarkAnnotation: owner.Seal(test.mark)}, test.self)
		if !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
			t.Errorf("%s: want %v, got %v", test.name, test.want, err)
		}
		if want := test.mark; test.want == nil && mark != want || test.want != nil && mark != (ownership.Mark{}) {
			t.Errorf("%s: got %+v", test.name, mark)
		}
	}
	if _, err := owner.VerifyUp(nil, self); !errors.Is(err, ownership.ErrUnmarked) {
		t.Errorf("no annotations: %v", err)
	}
}

// A mark without new fields has the same text as before the fields existed, since hubs of two versions may share objects.
func TestDownMarkOmitsNewFields(t *testing.T) {
	if text := markOf(owner, self).String(); strings.Contains(text, "direction") || strings.Contains(text, "adopted") {
		t.Errorf("the mark of a downsynced object has further fields: %s", text)
	}
}

func FuzzVerify(f *testing.F) {
	up := markOf(owner, self)
	up.Direction = ownership.DirectionUp
	f.Add(owner.Seal(up), self.Group, self.Kind, self.Namespace, self.Name)
	f.Add(owner.Seal(markOf(owner, self)), self.Group, self.Kind, self.Namespace, self.Name)
	f.Add(owner.Seal(markOf(owner, self)), self.Group, "ReplicaSet", self.Namespace, self.Name)
	f.Add("{}", "", "", "", "")
	f.Fuzz(func(t *testing.T, annotation, group, kind, namespace, name string) {
		bearer := ownership.Self{Group: group, Kind: kind, Namespace: namespace, Name: name}
		annotations := map[string]string{ownership.MarkAnnotation: annotation}
		down, errDown := owner.Verify(annotations, bearer)
		up, errUp := owner.VerifyUp(annotations, bearer)
		for direction, mark := range map[ownership.Direction]ownership.Mark{ownership.DirectionDown: down, ownership.DirectionUp: up} {
			if mark != (ownership.Mark{}) && (mark.Self != bearer || mark.Hub != owner.Hub || mark.SyncTarget != owner.SyncTarget || mark.Direction != direction) {
				t.Errorf("verified %+v on %+v", mark, bearer)
			}
		}
		if (errDown == nil) != (down != ownership.Mark{}) || (errUp == nil) != (up != ownership.Mark{}) {
			t.Errorf("%+v with %v, %+v with %v", down, errDown, up, errUp)
		}
		if errDown == nil && errUp == nil {
			t.Errorf("%s went down and came up", annotation)
		}
	})
}

func TestLabelValueAndFieldManager(t *testing.T) {
	uids := []types.UID{"", "a", "b", "ab", "3c1f7d0e-0000-4000-8000-000000000001", types.UID(strings.Repeat("x", 4096)), "ünïcode\x00"}
	labels := map[string]ownership.Owner{}
	managers := map[string]types.UID{}
	for _, hub := range uids {
		manager := ownership.FieldManager(hub)
		// The limit and the alphabet are the API server's for fieldManager.
		if len(manager) > 128 || strings.ContainsFunc(manager, func(r rune) bool { return r <= ' ' || r > '~' }) {
			t.Errorf("hub %q: illegal field manager %q", hub, manager)
		}
		if !strings.HasPrefix(manager, "synchub-") || manager != ownership.FieldManager(hub) {
			t.Errorf("hub %q: field manager %q", hub, manager)
		}
		if other, taken := managers[manager]; taken {
			t.Errorf("hubs %q and %q share the field manager %q", hub, other, manager)
		}
		managers[manager] = hub
		for _, syncTarget := range uids {
			candidate := ownership.Owner{Hub: hub, SyncTarget: syncTarget}
			label := candidate.LabelValue()
			if problems := content.IsLabelValue(label); label == "" || len(problems) > 0 {
				t.Errorf("%+v: illegal label value %q: %v", candidate, label, problems)
			}
			if label != candidate.LabelValue() {
				t.Errorf("%+v: the label value changes", candidate)
			}
			if other, taken := labels[label]; taken {
				t.Errorf("%+v and %+v share the label value %q", candidate, other, label)
			}
			labels[label] = candidate
		}
	}
	for _, key := range []string{ownership.OwnerLabel, ownership.MarkAnnotation, ownership.EnsuredAnnotation} {
		if problems := content.IsLabelKey(key); len(problems) > 0 {
			t.Errorf("illegal key %q: %v", key, problems)
		}
	}
}

func TestClaimedOwner(t *testing.T) {
	sealed := owner.Seal(markOf(owner, ownership.Self{Kind: "ConfigMap", Name: "a"}))
	for name, test := range map[string]struct {
		annotation string
		names      bool
	}{
		"a mark":                 {sealed, true},
		"of an unknown version":  {strings.Replace(sealed, `"v":2`, `"v":9`, 1), true},
		"without an annotation":  {"", false},
		"no JSON":                {sealed[1:], false},
		"no SyncTarget":          {`{"hub":"a"}`, false},
		"of another type at all": {`{"hub":["a"],"syncTarget":1}`, false},
	} {
		claimed, ok := ownership.ClaimedOwner(test.annotation)
		if ok != test.names || claimed.Sealer != nil || ok && (claimed.Hub != owner.Hub || claimed.SyncTarget != owner.SyncTarget) {
			t.Errorf("%s: got %+v, %v", name, claimed, ok)
		}
	}
}
