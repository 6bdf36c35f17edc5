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
	// MarkAnnotation holds the [Mark] as JSON.
	MarkAnnotation = "synchub.dev/mark"
	// EnsuredAnnotation is put on a namespace that was created only so that its contents could be, and on what the hub made and
	// let go of because its end would have been that of others. Its value is [Owner.EnsuredValue]. Such an object is not owned:
	// the hub neither corrects nor deletes it. But it may own it again.
	EnsuredAnnotation = "synchub.dev/ensured-by"

	// MarkVersion is the version of the mark's format that this hub writes. An object that carries another version
	// is left alone: a newer hub may have given its fields another meaning.
	MarkVersion = 2
	// unsealedVersion is the version before marks were sealed.
	unsealedVersion = 1
)

// Policy says what becomes of a target object whose source is gone or no longer selected.
type Policy string

const (
	// PolicyDelete removes the object.
	PolicyDelete Policy = "Delete"
	// PolicyOrphan leaves the object and takes the marks off it.
	PolicyOrphan Policy = "Orphan"
	// PolicyCreateOnly leaves an object alone from the moment it exists.
	PolicyCreateOnly Policy = "CreateOnly"
)

// Direction is the way an object went between a mailbox and its target.
type Direction string

const (
	// DirectionDown is from the mailbox to the target: the source is the mailbox's, the bearer of the mark the target's.
	DirectionDown Direction = ""
	// DirectionUp is from the target to the mailbox: the source is the target's, the bearer of the mark the mailbox's.
	DirectionUp Direction = "up"
)

// Source names the object that the bearer of a mark came from: for what went down one of the mailbox, for what came up
// one of the target.
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

// Mark is what the hub writes on every object it puts on a target or into a mailbox. It holds all that a hub needs, after any crash, to
// decide about the object; it never names a replica.
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
	// Direction is the way that the object went.
	Direction Direction `json:"direction,omitempty"`
	// Adopted is true if the object existed before the hub took it over.
	Adopted bool `json:"adopted,omitempty"`
	// Ignored are the paths that were left to the target when Hash was made, one on each line.
	Ignored string `json:"ignored,omitempty"`
	// Relation is set if the object travelled because it is related to another: the name of the PublishedResource that
	// says so, a slash, and the identifier of the relation. It says no more than why the object once came.
	Relation string `json:"relation,omitempty"`
}

// String returns what the mark says, as JSON. Equal marks give equal strings. On an object it stands sealed, see [Owner.Seal].
func (m Mark) String() string { return string(m.encode()) }

func (m Mark) encode() []byte {
	// A struct of strings and ints always marshals.
	data, _ := json.Marshal(m) //nolint:errchkjson // see above
	return data
}

// ParseMark reads what the value of [MarkAnnotation] claims, whoever wrote it: only [Owner.Verify] tells whether it is true. It
// fails on malformed JSON, on fields it does not know and on a version other than [MarkVersion]: what we cannot read completely is
// not ours to touch.
// The texts of the mark may be parts of the annotation, which they keep in memory.
func ParseMark(annotation string) (Mark, error) {
	if mark, ok := parseCanonicalMark(annotation); ok {
		return mark, nil
	}
	return parseMarkJSON(annotation, MarkVersion)
}

func parseMarkJSON(annotation string, wanted int) (Mark, error) {
	var sealed struct {
		Mark
		Seal string `json:"seal,omitempty"`
	}
	unknown, err := strictjson.UnmarshalStrict([]byte(annotation), &sealed, strictjson.DisallowUnknownFields)
	if err == nil && len(unknown) == 0 && sealed.Version == wanted {
		return sealed.Mark, nil
	}
	// A mark of another version may well have other fields, and of other types.
	var version struct {
		Version int `json:"v"`
	}
	if json.Unmarshal([]byte(annotation), &version) == nil && version.Version != wanted {
		return Mark{}, fmt.Errorf("the annotation %s has version %d, this hub knows version %d: %w", MarkAnnotation, version.Version, wanted, ErrUnknownVersion)
	}
	return Mark{}, fmt.Errorf("the annotation %s is not a mark: %w", MarkAnnotation, errors.Join(append(unknown, err)...))
}
