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

package transform

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// OwnersAnnotation is on a mailbox object that was upsynced. Its value is the [OwnerRecord]s of its owners on the target, as JSON. Their
// UIDs are the target's, so the mailbox object itself has no ownerReferences.
const OwnersAnnotation = "synchub.dev/owners"

// maxOwners bounds the recorded owners: a target may send any number.
const maxOwners = 8

// OwnerRecord names an owner on the target, which is in the namespace of the object or cluster-scoped.
type OwnerRecord struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Name       string    `json:"name"`
	UID        types.UID `json:"uid"`
	Controller bool      `json:"controller,omitempty"`
}

// recordOwners adds OwnersAnnotation to the content if the target object has owners.
func recordOwners(content map[string]any, target *unstructured.Unstructured) {
	var records []OwnerRecord
	for _, owner := range target.GetOwnerReferences() {
		if len(records) < maxOwners {
			records = append(records, OwnerRecord{
				APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name, UID: owner.UID, Controller: owner.Controller != nil && *owner.Controller,
			})
		}
	}
	if len(records) == 0 {
		return
	}
	text, _ := json.Marshal(records) //nolint:errchkjson // strings and bools only
	setMetadataEntry(content, "annotations", OwnersAnnotation, string(text))
}

// OwnersOf returns the recorded owners of a mailbox object; none if the record is malformed.
func OwnersOf(inMailbox metav1.Object) []OwnerRecord {
	var records []OwnerRecord
	text := inMailbox.GetAnnotations()[OwnersAnnotation]
	if text == "" || json.Unmarshal([]byte(text), &records) != nil {
		return nil
	}
	return records[:min(len(records), maxOwners)]
}
