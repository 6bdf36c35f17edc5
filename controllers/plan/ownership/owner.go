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

package ownership

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

var (
	// ErrUnknownVersion means that this hub does not know the format of the mark.
	ErrUnknownVersion = errors.New("unknown mark version")
	// ErrUnmarked means that the object has no mark.
	ErrUnmarked = errors.New("no mark")
	// ErrForeign means that the mark is of another hub, or for another SyncTarget.
	ErrForeign = errors.New("marked by another hub or for another SyncTarget")
	// ErrUnverified means that the mark names this hub but its seal does not verify. A forged mark and a mark sealed with an
	// earlier key cannot be distinguished without that key.
	ErrUnverified = errors.New("its mark names this hub and does not verify: somebody else wrote it, or this hub did before its hash key was replaced")
	// ErrCopied means that the mark was written for another object, on this side or the other: a controller copied it to a
	// child, or a user copied the object.
	ErrCopied = errors.New("the mark was copied from another object")
)

// Owner is a hub that acts for one SyncTarget.
type Owner struct {
	// Hub is the UID of the provider workspace's LogicalCluster.
	Hub types.UID
	// SyncTarget is the UID of the SyncTarget.
	SyncTarget types.UID
	// Sealer has the hub's key. Without it, an Owner owns nothing.
	Sealer *Sealer
}

// placementPrefix distinguishes the owner of the copies that placements make in a mailbox from the owner of upsynced objects,
// which has the SyncTarget's UID alone.
const placementPrefix = "placement/"

// ForPlacements returns the owner of the copies that placements make in the mailbox of the owner's SyncTarget.
func (o Owner) ForPlacements() Owner {
	o.SyncTarget = placementPrefix + o.SyncTarget
	return o
}

// IsForPlacements reports whether the owner is a result of [Owner.ForPlacements].
func (o Owner) IsForPlacements() bool {
	return len(o.SyncTarget) > len(placementPrefix) && strings.HasPrefix(string(o.SyncTarget), placementPrefix)
}

// MayBeForPlacements reports whether a mark may name such an owner, without parsing it.
func MayBeForPlacements(mark string) bool { return strings.Contains(mark, placementPrefix) }

// workspacePrefix distinguishes the owner of upsynced objects in a workload workspace.
const workspacePrefix = "workspace/"

// ForWorkspace returns the owner of the objects of the owner's SyncTarget in a workload workspace. inventory is the logical cluster of
// the SyncTarget, which a hub needs to verify that the SyncTarget is gone.
func (o Owner) ForWorkspace(workspace, inventory string) Owner {
	o.SyncTarget = types.UID(workspacePrefix + workspace + "/" + inventory + "/" + string(o.SyncTarget))
	return o
}

// MayBeForWorkspace reports whether a mark may name such an owner, without parsing it.
func MayBeForWorkspace(mark string) bool { return strings.Contains(mark, `"`+workspacePrefix) }

// SplitForWorkspace returns the arguments and the SyncTarget of [Owner.ForWorkspace]; ok is false for other owners.
func (o Owner) SplitForWorkspace() (workspace, inventory string, syncTarget types.UID, ok bool) {
	rest, ok := strings.CutPrefix(string(o.SyncTarget), workspacePrefix)
	parts := strings.Split(rest, "/")
	if !ok || len(parts) != 3 {
		return "", "", "", false
	}
	return parts[0], parts[1], types.UID(parts[2]), true
}

// ClaimedOwner returns the owner that a mark of any version names, without a Sealer; false if it names none. Callers use it to
// find the objects of a SyncTarget when the hub is unknown. It does not verify the mark: see [Owner.Verify].
func ClaimedOwner(annotation string) (Owner, bool) {
	var claimed struct {
		Hub        types.UID `json:"hub"`
		SyncTarget types.UID `json:"syncTarget"`
	}
	if json.Unmarshal([]byte(annotation), &claimed) != nil || claimed.Hub == "" || claimed.SyncTarget == "" {
		return Owner{}, false
	}
	return Owner{Hub: claimed.Hub, SyncTarget: claimed.SyncTarget}, true
}

// LabelValue returns the value of [OwnerLabel]: short, valid as a label, and different for every hub and SyncTarget.
func (o Owner) LabelValue() string {
	return shortHash(string(o.Hub), string(o.SyncTarget))
}

// FieldManager returns the field manager of a hub. Hubs have different field managers, so that two hubs can share a target. The
// replicas of one hub share one.
func FieldManager(hub types.UID) string {
	return "synchub-" + shortHash(string(hub))
}

// Verify returns the mark of a target object that the owner downsynced. Otherwise the error is, or wraps, [ErrUnmarked],
// [ErrForeign], [ErrCopied], [ErrUnverified] or [ErrUnknownVersion], or the reason why the mark cannot be parsed. It
// ignores the label: if somebody removed it, the mark suffices to restore it.
func (o Owner) Verify(annotations map[string]string, self Self) (Mark, error) {
	return o.verify(annotations, self, DirectionDown)
}

// VerifyUp does the same for a mailbox object that the owner upsynced.
func (o Owner) VerifyUp(annotations map[string]string, self Self) (Mark, error) {
	return o.verify(annotations, self, DirectionUp)
}

// MarkKeys returns the keys of the labels and annotations to remove from an object that the owner releases.
func (o Owner) MarkKeys(labels, annotations map[string]string) (labelKeys, annotationKeys []string) {
	if labels[OwnerLabel] == o.LabelValue() {
		labelKeys = []string{OwnerLabel}
	}
	for _, key := range []string{MarkAnnotation, IdentityAnnotation} {
		if _, ok := annotations[key]; ok {
			annotationKeys = append(annotationKeys, key)
		}
	}
	return labelKeys, annotationKeys
}

func (o Owner) verify(annotations map[string]string, self Self, direction Direction) (Mark, error) {
	text, ok := annotations[MarkAnnotation]
	if !ok {
		return Mark{}, ErrUnmarked
	}
	return o.VerifyMark(text, self, direction)
}

// VerifyMark does the same as [Owner.Verify] or [Owner.VerifyUp] for the value of the annotation.
func (o Owner) VerifyMark(text string, self Self, direction Direction) (Mark, error) {
	mark, err := ParseMark(text)
	if err == nil {
		err = o.checkClaim(mark, self, direction)
	}
	switch {
	case err != nil:
		return Mark{}, err
	case !o.Sealer.verifyMark(text):
		return Mark{}, ErrUnverified
	}
	// Caches keep the mark: equal strings share their memory.
	mark.Hub, mark.SyncTarget, mark.Self = o.Hub, o.SyncTarget, self
	return mark, nil
}

// checkClaim returns an error if the mark does not claim that the owner owns the object.
func (o Owner) checkClaim(mark Mark, self Self, direction Direction) error {
	switch {
	case mark.Self != self, mark.Direction != direction && mark.Hub == o.Hub && mark.SyncTarget == o.SyncTarget:
		return ErrCopied
	case mark.Hub != o.Hub || mark.SyncTarget != o.SyncTarget:
		return ErrForeign
	}
	return nil
}

// IsAdoptable reports whether an object with this verification error may be adopted, because its mark does not show that a hub
// owns it.
func IsAdoptable(reason error) bool {
	return errors.Is(reason, ErrUnmarked) || errors.Is(reason, ErrCopied)
}

// MayUpsync reports whether the mark of a target object allows its upsync for the owner. A mark that claims a downsync of the
// object forbids the upsync, even if the seal does not verify. A mark that a controller copied from one of the owner's objects
// allows it.
func (o Owner) MayUpsync(text string, self Self) bool {
	mark, err := ParseMark(text)
	if err != nil {
		return false
	}
	err = o.checkClaim(mark, self, DirectionDown)
	return errors.Is(err, ErrCopied) && mark.Hub == o.Hub && mark.SyncTarget == o.SyncTarget
}

var lowerBase32 = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// shortHash returns a hash of 120 bits: enough to exclude collisions of SyncTargets, and short enough to read.
func shortHash(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return lowerBase32.EncodeToString(sum[:15])
}
