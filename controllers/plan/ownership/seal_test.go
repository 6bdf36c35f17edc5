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

	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

// Marks that another client could write with knowledge of everything except the key, and the seals of other objects.
func TestForgedMarks(t *testing.T) {
	sealed := owner.Seal(markOf(owner, self))
	another := owner
	another.Sealer = ownership.NewSealer([]byte("another key"))
	neighbour := self
	neighbour.Name = "web-0"
	up := markOf(owner, self)
	up.Direction = ownership.DirectionUp
	seal := func(text string) string { return text[strings.LastIndex(text, `,"seal"`):] }
	body := strings.TrimSuffix(sealed, seal(sealed))
	for name, test := range map[string]struct {
		text string
		want error
	}{
		"without a seal":                   {markOf(owner, self).String(), ownership.ErrUnverified},
		"with an empty seal":               {ownership.Owner{}.Seal(markOf(owner, self)), ownership.ErrUnverified},
		"with another hub's key":           {another.Seal(markOf(owner, self)), ownership.ErrUnverified},
		"with the seal of another object":  {body + seal(owner.Seal(markOf(owner, neighbour))), ownership.ErrUnverified},
		"with the seal of what came up":    {body + seal(owner.Seal(up)), ownership.ErrUnverified},
		"with half a seal":                 {sealed[:len(sealed)-14] + `"}`, ownership.ErrUnverified},
		"with more than a seal":            {strings.TrimSuffix(sealed, `"}`) + `A"}`, ownership.ErrUnverified},
		"with the policy changed":          {strings.Replace(sealed, `"Delete"`, `"Orphan"`, 1), ownership.ErrUnverified},
		"with the source changed":          {strings.Replace(sealed, `"uid":"77"`, `"uid":"78"`, 1), ownership.ErrUnverified},
		"as if it had not been adopted":    {strings.Replace(adoptedMark().text, `"adopted":true,`, "", 1), ownership.ErrUnverified},
		"with a word before":               {strings.Replace(sealed, `{"v":2`, `{"v":2,"adopted":true`, 1), ownership.ErrUnverified},
		"with a word after the seal":       {strings.TrimSuffix(sealed, "}") + `,"adopted":true}`, ownership.ErrUnverified},
		"with a blank":                     {strings.Replace(sealed, `,"self"`, `, "self"`, 1), ownership.ErrUnverified},
		"with a seal for what ensures":     {body + `,"seal":"` + ensuring(self) + `"}`, ownership.ErrUnverified},
		"of another object":                {owner.Seal(markOf(owner, neighbour)), ownership.ErrCopied},
		"of another object, with our name": {strings.ReplaceAll(owner.Seal(markOf(owner, neighbour)), "web-0", "web"), ownership.ErrUnverified},
		"of another SyncTarget of our hub": {owner.Seal(markOf(ownership.Owner{Hub: owner.Hub, SyncTarget: "x"}, self)), ownership.ErrForeign},
		"of another hub, with its key":     {another.Seal(markOf(ownership.Owner{Hub: "x", SyncTarget: owner.SyncTarget}, self)), ownership.ErrForeign},
	} {
		if test.text == sealed {
			t.Fatalf("%s: the case does not change the mark", name)
		}
		mark, err := owner.Verify(map[string]string{ownership.MarkAnnotation: test.text}, self)
		if !errors.Is(err, test.want) || mark != (ownership.Mark{}) {
			t.Errorf("%s: want %v, got %+v, %v", name, test.want, mark, err)
		}
	}
}

type sealedMark struct {
	mark ownership.Mark
	text string
}

func adoptedMark() sealedMark {
	mark := markOf(owner, self)
	mark.Adopted = true
	return sealedMark{mark, owner.Seal(mark)}
}

// ensuring returns the seal of an ensured object.
func ensuring(self ownership.Self) string {
	_, seal, _ := strings.Cut(owner.EnsuredValue(self), ".")
	return seal
}

// A mark does not verify when any byte is changed, removed or added.
func TestEveryByteIsSealed(t *testing.T) {
	sealed := adoptedMark()
	verify := func(text string) error {
		_, err := owner.Verify(map[string]string{ownership.MarkAnnotation: text}, self)
		return err
	}
	if err := verify(sealed.text); err != nil {
		t.Fatal(err)
	}
	for i := range len(sealed.text) {
		for what, text := range map[string]string{
			"changed":    sealed.text[:i] + string(sealed.text[i]^1) + sealed.text[i+1:],
			"taken away": sealed.text[:i] + sealed.text[i+1:],
			"doubled":    sealed.text[:i] + sealed.text[i:i+1] + sealed.text[i:],
			"cut off":    sealed.text[:i],
		} {
			if text != sealed.text && verify(text) == nil {
				t.Errorf("byte %d %s: %s", i, what, text)
			}
		}
	}
}

// Without a key, the owner owns nothing, and its marks never verify.
func TestNoKey(t *testing.T) {
	none := ownership.Owner{Hub: owner.Hub, SyncTarget: owner.SyncTarget}
	for name, text := range map[string]string{"a good mark": owner.Seal(markOf(owner, self)), "its own": none.Seal(markOf(owner, self))} {
		if _, err := none.VerifyMark(text, self, ownership.DirectionDown); !errors.Is(err, ownership.ErrUnverified) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if none.HasEnsured(owner.EnsuredValue(self), self) || none.HasEnsured(none.EnsuredValue(self), self) || owner.HasEnsured(none.EnsuredValue(self), self) {
		t.Error("something is ensured without a key")
	}
	believing := none
	believing.Sealer = ownership.InsecureSealer
	if mark, err := believing.VerifyMark(owner.Seal(markOf(owner, self)), self, ownership.DirectionDown); err != nil || mark != markOf(owner, self) {
		t.Errorf("the plugin reads %+v, %v", mark, err)
	}
	if _, err := owner.VerifyMark(believing.Seal(markOf(owner, self)), self, ownership.DirectionDown); !errors.Is(err, ownership.ErrUnverified) {
		t.Errorf("a mark of the plugin verifies: %v", err)
	}
}

func TestMayUpsync(t *testing.T) {
	child := ownership.Self{Group: "apps", Kind: "ReplicaSet", Namespace: "shop", Name: "web-5d9"}
	neighbour := ownership.Owner{Hub: owner.Hub, SyncTarget: "neighbour", Sealer: owner.Sealer}
	up := markOf(owner, self)
	up.Direction = ownership.DirectionUp
	for name, test := range map[string]struct {
		text string
		self ownership.Self
		want bool
	}{
		"it went down":                     {owner.Seal(markOf(owner, self)), self, false},
		"a mark of a downsync, not sealed": {markOf(owner, self).String(), self, false},
		"made of what went down":           {owner.Seal(markOf(owner, self)), child, true},
		"brought back from the mailbox":    {owner.Seal(up), self, true},
		"another SyncTarget's":             {neighbour.Seal(markOf(neighbour, self)), self, false},
		"made of another SyncTarget's":     {neighbour.Seal(markOf(neighbour, self)), child, false},
		"another hub's":                    {markOf(ownership.Owner{Hub: "x", SyncTarget: owner.SyncTarget}, self).String(), self, false},
		"of the version before":            {strings.Replace(markOf(owner, child).String(), `"v":2`, `"v":1`, 1), self, false},
		"of a later version":               {`{"v":3}`, self, false},
		"no mark at all":                   {"x", self, false},
		"empty":                            {"", self, false},
	} {
		if got := owner.MayUpsync(test.text, test.self); got != test.want {
			t.Errorf("%s: want %t, got %t", name, test.want, got)
		}
	}
}

func TestEnsured(t *testing.T) {
	shop := ownership.Self{Kind: "Namespace", Name: "shop"}
	value := owner.EnsuredValue(shop)
	if !owner.HasEnsured(value, shop) {
		t.Fatal("what the hub ensured it does not know")
	}
	others := map[string]ownership.Owner{"another hub": owner, "another SyncTarget": owner, "another key": owner}
	for name, other := range others {
		switch name {
		case "another hub":
			other.Hub = "x"
		case "another SyncTarget":
			other.SyncTarget = types.UID("x")
		default:
			other.Sealer = ownership.NewSealer([]byte("x"))
		}
		if other.HasEnsured(value, shop) || owner.HasEnsured(other.EnsuredValue(shop), shop) {
			t.Errorf("%s shares it", name)
		}
	}
	for name, text := range map[string]string{
		"nothing": "", "the label alone": owner.LabelValue(), "no seal": owner.LabelValue() + ".", "cut off": value[:len(value)-1],
		"more": value + "A", "of another": owner.EnsuredValue(ownership.Self{Kind: "Namespace", Name: "shop2"}),
		"of another kind": owner.EnsuredValue(ownership.Self{Kind: "ConfigMap", Name: "shop"}),
	} {
		if owner.HasEnsured(text, shop) {
			t.Errorf("%s: %q is believed", name, text)
		}
	}
}

// Only the exact text that the hub wrote verifies.
func FuzzSeal(f *testing.F) {
	sealed := adoptedMark()
	f.Add(sealed.text)
	f.Add(sealed.mark.String())
	f.Add(sealed.text[:len(sealed.text)/2])
	f.Add(owner.EnsuredValue(self))
	f.Fuzz(func(t *testing.T, text string) {
		mark, err := owner.Verify(map[string]string{ownership.MarkAnnotation: text}, self)
		if err == nil && owner.Seal(mark) != text {
			t.Errorf("took %q for what the hub writes: %s", text, owner.Seal(mark))
		}
		if owner.HasEnsured(text, self) && text != owner.EnsuredValue(self) {
			t.Errorf("took %q for what the hub writes", text)
		}
		_ = owner.MayUpsync(text, self)
	})
}
