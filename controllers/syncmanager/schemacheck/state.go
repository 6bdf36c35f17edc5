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
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/discovery"
	"github.com/synchub-dev/synchub/provider/schemas/compatibility"
	"github.com/synchub-dev/synchub/provider/schemas/structural"
)

// Reasons of a [State].
const (
	// ReasonPending: the schemas were not compared yet. ReasonNotAnswered: the target did not respond.
	ReasonPending     = "Pending"
	ReasonNotAnswered = "NotAnswered"
	// ReasonCompatible: every object that the mailbox accepts fits.
	ReasonCompatible = "Compatible"
	// ReasonOlderAPI: a built-in kind of the target lacks fields or values of the mailbox's. The target refuses the objects that
	// use them, one by one.
	ReasonOlderAPI = "OlderAPI"
	// ReasonNotCompared: there are no two schemas to compare.
	ReasonNotCompared = "NotCompared"
	// ReasonSchemaIncompatible: the mailbox accepts objects that do not fit.
	ReasonSchemaIncompatible = "SchemaIncompatible"
	// ReasonSchemaTooLarge: the target's schema exceeds a limit, so it is not compared.
	ReasonSchemaTooLarge = "SchemaTooLarge"
	// ReasonNotServed: the target does not serve the resource. ReasonVersionNotServed: it serves the resource in other versions.
	ReasonNotServed        = "NotServed"
	ReasonVersionNotServed = "VersionNotServed"
	// ReasonForbidden: the target does not let the hub read the schema, or use the resource.
	ReasonForbidden = "Forbidden"
)

// State is whether objects of one resource fit into a target. The zero value means that this is unknown.
type State struct {
	edgev2alpha1.SyncedResourceState
	// Reason is one of the Reason constants. Message is a sentence for users.
	Reason, Message string
	// Schema is the [Schema.ID] of the compared schema, empty if none was compared.
	Schema string
}

// IsSchemaIncompatible reports whether mailbox objects do not fit, so that by default the hub writes none of them.
func (s State) IsSchemaIncompatible() bool {
	return IsSchemaIncompatible(s.SyncedResourceState, s.Reason)
}

// IsSchemaIncompatible reports the same for a recorded state and reason.
func IsSchemaIncompatible(state edgev2alpha1.SyncedResourceState, reason string) bool {
	return state == edgev2alpha1.SyncedResourceIncompatible && (reason == ReasonSchemaIncompatible || reason == ReasonSchemaTooLarge)
}

func accepted(reason, message string) State {
	return State{SyncedResourceState: edgev2alpha1.SyncedResourceAccepted, Reason: reason, Message: message}
}

func incompatible(reason, message string) State {
	return State{SyncedResourceState: edgev2alpha1.SyncedResourceIncompatible, Reason: reason, Message: message}
}

// NotCompared returns the state of a resource whose schema the hub does not publish. native is true if kcp itself serves the kind.
func NotCompared(native bool) State {
	if native {
		return accepted(ReasonNotCompared, "kcp serves this kind by itself, as the target does; there are no schemas to compare.")
	}
	return accepted(ReasonNotCompared, "The API belongs to another export, whose schema the hub does not see.")
}

const (
	// maxListedFindings is how many findings a message names, maxFindingsLength how many characters they may take.
	maxListedFindings = 5
	maxFindingsLength = 1024
)

// stateForFindings returns the state for findings. For a built-in kind, missing fields or values mean that the
// target is older than the mailbox's schema. The message then reports that, but objects that use none of the
// missing fields are synced.
func stateForFindings(findings []compatibility.Finding, builtIn bool) State {
	var serious []compatibility.Finding
	for _, finding := range findings {
		if !builtIn || finding.Reason != compatibility.ReasonFieldLost && finding.Reason != compatibility.ReasonEnum {
			serious = append(serious, finding)
		}
	}
	switch {
	case len(serious) > 0:
		return incompatible(ReasonSchemaIncompatible, "The mailbox accepts objects that the target would refuse or not keep. "+formatFindings(serious))
	case len(findings) > 0:
		return accepted(ReasonOlderAPI, "The target's version of this kind lacks what the mailbox's has; objects that use it are refused by the target. "+formatFindings(findings))
	default:
		return accepted(ReasonCompatible, "Every object that the mailbox accepts fits into the target.")
	}
}

func formatFindings(findings []compatibility.Finding) string {
	var lines []string
	for _, finding := range findings[:min(len(findings), maxListedFindings)] {
		lines = append(lines, finding.String())
	}
	text := strings.Join(lines, "; ")
	if runes := []rune(text); len(runes) > maxFindingsLength {
		text = string(runes[:maxFindingsLength]) + "…"
	}
	if more := len(findings) - maxListedFindings; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text + "."
}

var notAnsweredState = State{
	SyncedResourceState: edgev2alpha1.SyncedResourcePending, Reason: ReasonNotAnswered, Message: "The target could not be asked for its schema; it is asked again.",
}

// stateForError returns the state for an error of the target; used is the version in the hub's request. ok is
// false if the target may respond differently to another request.
func stateForError(err error, used string) (state State, ok bool) {
	version, otherVersion := errors.AsType[*discovery.VersionNotServedError](err)
	unusable, isUnusable := errors.AsType[*discovery.UnusableError](err)
	tooLarge, isTooLarge := errors.AsType[*structural.TooLargeError](err)
	switch {
	case isTooLarge:
		return incompatible(ReasonSchemaTooLarge, fmt.Sprintf("The target's schema is too large to be compared: %s.", tooLarge)), true
	case otherVersion:
		return incompatible(ReasonVersionNotServed, fmt.Sprintf("The target does not serve version %s: %s.", used, version)), true
	case errors.Is(err, discovery.ErrNotServed):
		return incompatible(ReasonNotServed, "The target does not serve it."), true
	case isUnusable:
		return accepted(ReasonNotCompared, fmt.Sprintf("The target's schema cannot be read: %s.", unusable)), true
	case apierrors.IsForbidden(err):
		return accepted(ReasonNotCompared, "The target does not let the hub read its schema: allow get of /openapi/v3/* and of customresourcedefinitions."), true
	default:
		return notAnsweredState, false
	}
}
