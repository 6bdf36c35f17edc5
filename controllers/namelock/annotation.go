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

package namelock

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// crdStatus is the state of a CRD in a mailbox.
type crdStatus string

const (
	// crdGone: the CRD does not exist.
	crdGone crdStatus = "Gone"
	// crdRefused: kcp refuses the names of the CRD, so it never served an object.
	crdRefused crdStatus = "Refused"
	// crdServing: the CRD serves objects, or did, or soon will.
	crdServing crdStatus = "Serving"
)

func crdState(definition *unstructured.Unstructured, exists bool) crdStatus {
	switch {
	case !exists:
		return crdGone
	case conditionStatus(definition, "Established") != "True" && conditionStatus(definition, "NamesAccepted") == "False":
		return crdRefused
	default:
		return crdServing
	}
}

func conditionStatus(definition *unstructured.Unstructured, condition string) any {
	all, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	for _, item := range all {
		if fields, ok := item.(map[string]any); ok && fields["type"] == condition {
			return fields["status"]
		}
	}
	return nil
}

// expiredTime is an expiry in the past, whatever the clocks say.
const expiredTime = "2000-01-01T00:00:00Z"

// freeNames returns the annotation without the reservations of CRDs that serve nothing. The record of a CRD that is gone
// gets an expiry, so that kcp decides. A record that already has an expiry is for a CRD that is being created, or expires
// by itself.
func freeNames(annotation string, definitions map[string]crdStatus) (freed string, changed bool, err error) {
	if annotation == "" {
		return "", false, nil
	}
	// Unknown fields of a record are kept.
	records := map[string]map[string]any{}
	if err := json.Unmarshal([]byte(annotation), &records); err != nil {
		return "", false, fmt.Errorf("cannot read the annotation %s: %w", Annotation, err)
	}
	for name, state := range definitions {
		record := records[name]
		if record["c"] != true || record["e"] != nil {
			continue
		}
		switch state {
		case crdGone:
			record["e"], changed = expiredTime, true
		case crdRefused:
			delete(records, name)
			changed = true
		case crdServing:
		}
	}
	if !changed {
		return "", false, nil
	}
	text, err := json.Marshal(records)
	return string(text), true, err
}
