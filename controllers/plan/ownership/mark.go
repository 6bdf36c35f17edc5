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
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	strictjson "sigs.k8s.io/json"
)

const (
	// OwnerLabel selects the objects of one hub and one SyncTarget; its value is [Owner.LabelValue].
	OwnerLabel = "synchub.dev/owner"
	// InstalledByLabel is the label of each CRD that the hub installed for a published API; its value is [Owner.LabelValue]. It differs
	// from OwnerLabel, so that such a CRD is not mistaken for a downsynced one.
	InstalledByLabel = "synchub.dev/installed-by"
	// MarkAnnotation holds the [Mark] as JSON.
	MarkAnnotation = "synchub.dev/mark"
	// StatusAnnotation is on an object of a workload workspace whose status the hub wrote. Its value is the result of
	// [Owner.EnsuredValue].
	StatusAnnotation = "synchub.dev/status-by"
	// ChoiceAnnotation is on a SinglePlacementSlice whose placement chooses clusters. Its value is a seal over the
	// destinations.
	ChoiceAnnotation = "synchub.dev/choice"
	// RevisionAnnotation is on a PlacementRevision that the hub created. Its value is a seal over its name, placement and number.
	RevisionAnnotation = "synchub.dev/revision"
	// EnsuredAnnotation is on namespaces that the hub created only for their contents, and on objects that it created and
	// released because their deletion would delete other objects. Its value is [Owner.EnsuredValue]. The hub does not own such an
	// object: it neither corrects nor deletes the object. But the hub may take over its ownership again.
	EnsuredAnnotation = "synchub.dev/ensured-by"

	// MarkVersion is the version of the format that this hub writes. The hub does not change objects with another version,
	// because a newer hub may have given the fields another meaning.
	MarkVersion = 2
)

// Policy is what the hub does with a copy when its source is deleted or deselected.
type Policy string

const (
	// PolicyDelete deletes the copy.
	PolicyDelete Policy = "Delete"
	// PolicyOrphan leaves the copy and removes its marks.
	PolicyOrphan Policy = "Orphan"
	// PolicyCreateOnly never changes the copy after its creation.
	PolicyCreateOnly Policy = "CreateOnly"
)

// Direction is the direction in which an object was synced.
type Direction string

const (
	// DirectionDown is from the mailbox to the target: the marked object is on the target.
	DirectionDown Direction = ""
	// DirectionUp is from the target to the mailbox: the marked object is in the mailbox.
	DirectionUp Direction = "up"
)

// Source names the object that the marked object is a copy of: a mailbox object after a downsync, a target object after an
// upsync.
type Source struct {
	Group     string    `json:"group,omitempty"`
	Resource  string    `json:"resource"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
}

// Self names the object that carries the mark.
type Self struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// Mark is on every object that the hub syncs. It holds all facts that a hub needs after a crash to decide about the object. It
// never names a replica.
type Mark struct {
	Version int `json:"v"`
	// Hub is the UID of the provider workspace's LogicalCluster.
	Hub types.UID `json:"hub"`
	// SyncTarget is the UID of the SyncTarget.
	SyncTarget types.UID `json:"syncTarget"`
	// Mailbox is the name of the mailbox's logical cluster.
	Mailbox string `json:"mailbox"`
	Source  Source `json:"source"`
	Self    Self   `json:"self"`
	Policy  Policy `json:"policy"`
	// Hash is the keyed hash of the desired object without its marks (see [Hasher]).
	Hash string `json:"hash"`
	// Direction is the direction of the sync.
	Direction Direction `json:"direction,omitempty"`
	// Adopted is true if the object existed before the hub took it over.
	Adopted bool `json:"adopted,omitempty"`
	// Ignored are the paths that the hub left to the target when it computed Hash, one on each line.
	Ignored string `json:"ignored,omitempty"`
	// Relation names the relation that syncs the object: PublishedResource, slash, identifier. The hub keeps the name while a
	// primary of that PublishedResource claims the object, and keeps the object when the PublishedResource is deleted.
	Relation string `json:"relation,omitempty"`
	// SourceVersion is the resourceVersion of the source at the last apply; zero if it is unknown. It is no reason for a write: see
	// package storehistory for its use.
	SourceVersion uint64 `json:"sourceVersion,omitempty"`
}

// String returns the mark as JSON, without a seal; equal marks give equal strings. Objects carry it sealed, see [Owner.Seal].
func (m Mark) String() string { return string(m.encode()) }

func (m Mark) encode() []byte {
	// A struct of strings and ints can always be marshalled.
	data, _ := json.Marshal(m) //nolint:errchkjson // see above
	return data
}

// ParseMark parses [MarkAnnotation], which anybody can write; only [Owner.Verify] checks its claims. It fails on malformed
// JSON, unknown fields, and versions other than [MarkVersion]: the hub does not touch an object whose mark it cannot read
// completely.
func ParseMark(annotation string) (Mark, error) {
	var sealed struct {
		Mark
		Seal string `json:"seal,omitempty"`
	}
	unknown, err := strictjson.UnmarshalStrict([]byte(annotation), &sealed, strictjson.DisallowUnknownFields)
	if err == nil && len(unknown) == 0 && sealed.Version == MarkVersion {
		return sealed.Mark, nil
	}
	// A mark of another version may have other fields and types.
	var version struct {
		Version int `json:"v"`
	}
	if json.Unmarshal([]byte(annotation), &version) == nil && version.Version != MarkVersion {
		return Mark{}, fmt.Errorf("the annotation %s has version %d, this hub knows version %d: %w", MarkAnnotation, version.Version, MarkVersion, ErrUnknownVersion)
	}
	return Mark{}, fmt.Errorf("the annotation %s is not a mark: %w", MarkAnnotation, errors.Join(append(unknown, err)...))
}
