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

	"k8s.io/apimachinery/pkg/types"
	strictjson "sigs.k8s.io/json"
)

const (
	// IdentityAnnotation is beside the mark of some copies on a target. Its value is the [Identity] as JSON. It is not part of
	// the mark, because the UID of a copy is known only after its creation, and the hub makes no write only to record it.
	IdentityAnnotation = "synchub.dev/identity"
	// FinishedAnnotation is on a mailbox object that has run to completion on the target. Its value is the result of
	// [Owner.FinishedValue].
	FinishedAnnotation = "synchub.dev/finished"
)

// Identity identifies a copy on a target beside its mark: the users that it belongs to, and the target object that the hub wrote.
type Identity struct {
	// Workspace is the workload workspace that placed the object, and Object is the UID of its object there. They are empty if no
	// placement made the mailbox object.
	Workspace string    `json:"workspace,omitempty"`
	Object    types.UID `json:"object,omitempty"`
	// Copy is the UID that the copy had when the hub last changed it; empty if the hub has only created the copy.
	Copy types.UID `json:"copy,omitempty"`
}

// SealIdentity returns the value of [IdentityAnnotation] for an object; empty for the zero Identity.
func (o Owner) SealIdentity(identity Identity, self Self) string {
	if identity == (Identity{}) {
		return ""
	}
	sealed := sealedIdentity{identity, o.Sealer.SealText(identityPurpose, o.identityText(identity, self))}
	// A struct of strings can always be marshalled.
	text, _ := json.Marshal(sealed) //nolint:errchkjson // see above
	return string(text)
}

// VerifyIdentity returns the Identity in a value of [IdentityAnnotation]; zero if the owner did not write it for this object.
func (o Owner) VerifyIdentity(text string, self Self) Identity {
	var sealed sealedIdentity
	unknown, err := strictjson.UnmarshalStrict([]byte(text), &sealed, strictjson.DisallowUnknownFields)
	if err != nil || len(unknown) > 0 || !o.Sealer.VerifyText(sealed.Seal, identityPurpose, o.identityText(sealed.Identity, self)) {
		return Identity{}
	}
	return sealed.Identity
}

const identityPurpose = "identity"

type sealedIdentity struct {
	Identity
	Seal string `json:"seal"`
}

func (o Owner) identityText(identity Identity, self Self) string {
	text, _ := json.Marshal([]any{o.LabelValue(), self, identity}) //nolint:errchkjson // strings only
	return string(text)
}

// Run is one run of an object that runs to completion: the mailbox object, the workload object that it was placed for, and the spec.
type Run struct {
	Source types.UID      `json:"source"`
	Object types.UID      `json:"object,omitempty"`
	Spec   map[string]any `json:"spec"`
}

const finishedPurpose = "finished"

// FinishedValue returns the value of [FinishedAnnotation] after a run.
func (o Owner) FinishedValue(run Run) string {
	return o.Sealer.SealText(finishedPurpose, o.runText(run))
}

// HasFinished reports whether a value of [FinishedAnnotation] means that the run has finished.
func (o Owner) HasFinished(value string, run Run) bool {
	return value != "" && o.Sealer.VerifyText(value, finishedPurpose, o.runText(run))
}

func (o Owner) runText(run Run) string {
	text, _ := json.Marshal([]any{o.LabelValue(), run}) //nolint:errchkjson // values that JSON decoding has produced
	return string(text)
}
