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
	// ErrUnknownVersion means that a mark was written in a format this hub does not know.
	ErrUnknownVersion = errors.New("unknown mark version")
	// ErrUnmarked means that an object carries no mark.
	ErrUnmarked = errors.New("no mark")
	// ErrForeign means that the mark belongs to another hub or another SyncTarget.
	ErrForeign = errors.New("marked by another hub or for another SyncTarget")
	// ErrUnverified means that a mark claims to be the hub's and does not bear its seal. A forged mark and one that the hub sealed
	// with an earlier key look alike: without that key nobody can tell.
	ErrUnverified = errors.New("its mark names this hub and does not verify: somebody else wrote it, or this hub did before its hash key was replaced")
	// ErrUnsealed means that a mark was written for this SyncTarget by a hub that did not seal marks yet, or that somebody says so.
	ErrUnsealed = errors.New("its mark has version 1, which anybody could have written")
	// ErrCopied means that the mark was written for another object, on this side or on the other: a controller copied
	// it to a child, or a user took an object from one side to the other.
	ErrCopied = errors.New("the mark was copied from another object")
)

// Owner is a hub acting for one SyncTarget.
type Owner struct {
	// Hub is the UID of the provider workspace's LogicalCluster.
	Hub types.UID
	// SyncTarget is the UID of the SyncTarget.
	SyncTarget types.UID
	// Sealer has the hub's key. Without one an owner owns nothing.
	Sealer *Sealer
}

// ClaimedOwner returns the owner that a mark of any version names, whoever wrote it, without a Sealer; false if it names none.
// It serves to find the marks of a SyncTarget without knowing its hub. Only [Owner.Verify] says whether a mark counts.
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

// LabelValue is the value of [OwnerLabel]: short, legal as a label, and different for every hub and SyncTarget.
func (o Owner) LabelValue() string {
	return shortHash(string(o.Hub), string(o.SyncTarget))
}

// FieldManager is the name under which a hub applies. It differs between hubs, so that two of them can share a target,
// and is the same for every replica of one.
func FieldManager(hub types.UID) string {
	return "synchub-" + shortHash(string(hub))
}

// Verify returns the mark among annotations if the object self of a target is owned by o, which means that it went down.
// Otherwise the error is, or wraps, [ErrUnmarked], [ErrForeign], [ErrCopied], [ErrUnverified], [ErrUnsealed] or
// [ErrUnknownVersion], or tells why the mark cannot be read.
// The label is not looked at: somebody may have removed it, and then the mark alone says that it must be restored.
func (o Owner) Verify(annotations map[string]string, self Self) (Mark, error) {
	return o.verify(annotations, self, DirectionDown)
}

// VerifyUp is [Owner.Verify] for the object self of a mailbox, which is owned by o if it came up.
func (o Owner) VerifyUp(annotations map[string]string, self Self) (Mark, error) {
	return o.verify(annotations, self, DirectionUp)
}

// MarkKeys returns the keys of the labels and annotations to take off an object of o's that is let go.
func (o Owner) MarkKeys(labels, annotations map[string]string) (labelKeys, annotationKeys []string) {
	if labels[OwnerLabel] == o.LabelValue() {
		labelKeys = []string{OwnerLabel}
	}
	if _, ok := annotations[MarkAnnotation]; ok {
		annotationKeys = []string{MarkAnnotation}
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

// VerifyMark is [Owner.Verify], or [Owner.VerifyUp], for a mark that was taken from the annotations already.
func (o Owner) VerifyMark(text string, self Self, direction Direction) (Mark, error) {
	mark, err := ParseMark(text)
	if err == nil {
		err = o.checkClaim(mark, self, direction)
	}
	switch {
	case errors.Is(err, ErrUnknownVersion):
		return Mark{}, o.unknownVersionError(text, self, direction, err)
	case err != nil:
		return Mark{}, err
	case !o.Sealer.verifyMark(text):
		return Mark{}, ErrUnverified
	}
	return mark, nil
}

// checkClaim returns why a mark does not even claim that the object self is owned by o.
func (o Owner) checkClaim(mark Mark, self Self, direction Direction) error {
	switch {
	case mark.Self != self, mark.Direction != direction && mark.Hub == o.Hub && mark.SyncTarget == o.SyncTarget:
		return ErrCopied
	case mark.Hub != o.Hub || mark.SyncTarget != o.SyncTarget:
		return ErrForeign
	}
	return nil
}

// unknownVersionError tells a mark of the version before this one, which can be taken over, from those of later ones.
func (o Owner) unknownVersionError(text string, self Self, direction Direction, unknown error) error {
	mark, err := parseMarkJSON(text, unsealedVersion)
	if err != nil {
		return unknown
	}
	if err := o.checkClaim(mark, self, direction); err != nil {
		return err
	}
	return ErrUnsealed
}

// VerifyUnsealed returns the mark of the object self if it is one of version 1 that claims to be o's, and that was written when
// the object was what has the hash: nobody without the hub's key knows that hash, and it is that of no other object.
func (o Owner) VerifyUnsealed(text string, self Self, direction Direction, hash string) (Mark, bool) {
	mark, err := parseMarkJSON(text, unsealedVersion)
	return mark, err == nil && o.checkClaim(mark, self, direction) == nil && mark.Hash == hash && hash != ""
}

// IsAdoptable tells whether an object may be taken over that is not an owner's for the reason given: nobody says that it is a
// hub's, or nobody who is to be believed.
func IsAdoptable(reason error) bool {
	return errors.Is(reason, ErrUnmarked) || errors.Is(reason, ErrCopied) || errors.Is(reason, ErrUnsealed)
}

// MayUpsync tells whether the mark that the object self of a target bears lets it come up for o. What somebody says that a hub
// brought there does not, whether that is true or not; but a controller may have copied the mark of an object of o's.
func (o Owner) MayUpsync(text string, self Self) bool {
	mark, err := ParseMark(text)
	if err != nil {
		return false
	}
	err = o.checkClaim(mark, self, DirectionDown)
	return errors.Is(err, ErrCopied) && mark.Hub == o.Hub && mark.SyncTarget == o.SyncTarget
}

var lowerBase32 = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// shortHash has 120 bits: too many for two SyncTargets ever to meet, few enough to read.
func shortHash(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return lowerBase32.EncodeToString(sum[:15])
}
