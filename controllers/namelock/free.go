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

// state is how a CustomResourceDefinition is.
type state string

const (
	// gone: there is none.
	gone state = "Gone"
	// refused: kcp refuses its names, so it never served an object.
	refused state = "Refused"
	// serving: it serves objects, or soon will, or did.
	serving state = "Serving"
)

func stateOf(definition *unstructured.Unstructured, exists bool) state {
	switch {
	case !exists:
		return gone
	case statusOf(definition, "Established") != "True" && statusOf(definition, "NamesAccepted") == "False":
		return refused
	default:
		return serving
	}
}

func statusOf(definition *unstructured.Unstructured, condition string) any {
	all, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	for _, item := range all {
		if fields, ok := item.(map[string]any); ok && fields["type"] == condition {
			return fields["status"]
		}
	}
	return nil
}

// passed is an expiry that has passed by everybody's clock.
const passed = "2000-01-01T00:00:00Z"

// free returns the annotation with the names freed that kcp keeps for definitions that serve nothing. One that is gone gets an
// expiry, so that kcp decides. A note that has one already is of a definition that is just being made, or goes by itself.
func free(annotation string, definitions map[string]state) (freed string, changed bool, err error) {
	if annotation == "" {
		return "", false, nil
	}
	// What is not known of a note stays as it is.
	notes := map[string]map[string]any{}
	if err := json.Unmarshal([]byte(annotation), &notes); err != nil {
		return "", false, fmt.Errorf("cannot read the annotation %s: %w", Annotation, err)
	}
	for name, state := range definitions {
		note := notes[name]
		if note["c"] != true || note["e"] != nil {
			continue
		}
		switch state {
		case gone:
			note["e"], changed = passed, true
		case refused:
			delete(notes, name)
			changed = true
		case serving:
		}
	}
	if !changed {
		return "", false, nil
	}
	text, err := json.Marshal(notes)
	return string(text), true, err
}
