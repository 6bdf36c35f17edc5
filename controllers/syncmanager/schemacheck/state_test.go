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

package schemacheck

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/discovery"
	"github.com/synchub-dev/synchub/provider/schemas/compatibility"
)

func TestStateForFindings(t *testing.T) {
	of := func(reasons ...compatibility.Reason) (findings []compatibility.Finding) {
		for _, reason := range reasons {
			findings = append(findings, compatibility.Finding{Field: "spec.a", Reason: reason, Message: "because of " + string(reason)})
		}
		return findings
	}
	for name, test := range map[string]struct {
		findings []compatibility.Finding
		builtIn  bool
		reason   string
		says     string
	}{
		"nothing":                         {nil, false, ReasonCompatible, "fits"},
		"a lost field":                    {of(compatibility.ReasonFieldLost), false, ReasonSchemaIncompatible, "spec.a: because of FieldLost."},
		"a lost field of a built-in kind": {of(compatibility.ReasonFieldLost, compatibility.ReasonEnum), true, ReasonOlderAPI, "spec.a: because of FieldLost; spec.a: because of Enum."},
		"a type of a built-in kind":       {of(compatibility.ReasonFieldLost, compatibility.ReasonType), true, ReasonSchemaIncompatible, " spec.a: because of Type."},
		"many": {
			of("a", "b", "c", "d", "e", "f", "g"), false, ReasonSchemaIncompatible, "because of e; and 2 more.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			state := stateForFindings(test.findings, test.builtIn)
			if state.Reason != test.reason || !strings.Contains(state.Message, test.says) || state.IsSchemaIncompatible() != (test.reason == ReasonSchemaIncompatible) {
				t.Errorf("%+v", state)
			}
		})
	}
	long := stateForFindings([]compatibility.Finding{{Field: strings.Repeat("a", 1<<20), Reason: "a", Message: "b"}}, false)
	if len(long.Message) > 2*maxFindingsLength {
		t.Errorf("a message of %d bytes", len(long.Message))
	}
}

func TestStateForError(t *testing.T) {
	resource := schema.GroupResource{Resource: "widgets"}
	for name, test := range map[string]struct {
		err    error
		state  edgev2alpha1.SyncedResourceState
		reason string
		known  bool
	}{
		"not served":       {discovery.ErrNotServed, edgev2alpha1.SyncedResourceIncompatible, ReasonNotServed, true},
		"another version":  {&discovery.VersionNotServedError{Versions: []string{"v2"}}, edgev2alpha1.SyncedResourceIncompatible, ReasonVersionNotServed, true},
		"not readable":     {&discovery.UnusableError{Reason: "no"}, edgev2alpha1.SyncedResourceAccepted, ReasonNotCompared, true},
		"not permitted":    {apierrors.NewForbidden(resource, "w", nil), edgev2alpha1.SyncedResourceAccepted, ReasonNotCompared, true},
		"no answer":        {errors.New("no"), edgev2alpha1.SyncedResourcePending, ReasonNotAnswered, false},
		"an answer of 500": {apierrors.NewInternalError(errors.New("no")), edgev2alpha1.SyncedResourcePending, ReasonNotAnswered, false},
	} {
		t.Run(name, func(t *testing.T) {
			state, known := stateForError(test.err, "v1")
			if state.SyncedResourceState != test.state || state.Reason != test.reason || known != test.known || state.IsSchemaIncompatible() || state.Message == "" {
				t.Errorf("%+v, %v", state, known)
			}
		})
	}
}
