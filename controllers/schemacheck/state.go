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
	"github.com/synchub-dev/synchub/apis/schemas/compatibility"
	"github.com/synchub-dev/synchub/apis/schemas/structural"
	"github.com/synchub-dev/synchub/provider/discovery"
)

// Reasons of a [State].
const (
	// ReasonPending: the target was not compared yet; ReasonNotAnswered: it could not be.
	ReasonPending     = "Pending"
	ReasonNotAnswered = "NotAnswered"
	// ReasonCompatible: every object of the mailbox fits.
	ReasonCompatible = "Compatible"
	// ReasonOlderAPI: a built-in kind of the target lacks what the mailbox's has. Objects that use it are refused one by one.
	ReasonOlderAPI = "OlderAPI"
	// ReasonNotCompared: there is nothing to compare.
	ReasonNotCompared = "NotCompared"
	// ReasonSchemaIncompatible: there are objects of the mailbox that do not fit.
	ReasonSchemaIncompatible = "SchemaIncompatible"
	// ReasonSchemaTooLarge: the target's schema is beyond a limit, so that it is not compared.
	ReasonSchemaTooLarge = "SchemaTooLarge"
	// ReasonNotServed and ReasonVersionNotServed: the target does not serve the resource, or not in this version.
	ReasonNotServed        = "NotServed"
	ReasonVersionNotServed = "VersionNotServed"
	// ReasonForbidden: the target does not let the hub find out, or use the resource.
	ReasonForbidden = "Forbidden"
)

// State says whether objects of one resource fit into a target. The zero value says that it is not known.
type State struct {
	edgev2alpha1.SyncedResourceState
	// Reason is a constant; Message is a sentence for people.
	Reason, Message string
	// Schema is the [Schema.ID] of what was compared, empty if nothing was.
	Schema string
}

// IsSchemaIncompatible tells whether objects of the mailbox do not fit, so that by default none is written.
func (s State) IsSchemaIncompatible() bool {
	return IsSchemaIncompatible(s.SyncedResourceState, s.Reason)
}

// IsSchemaIncompatible tells the same of a state that was recorded.
func IsSchemaIncompatible(state edgev2alpha1.SyncedResourceState, reason string) bool {
	return state == edgev2alpha1.SyncedResourceIncompatible && (reason == ReasonSchemaIncompatible || reason == ReasonSchemaTooLarge)
}

func accepted(reason, message string) State {
	return State{SyncedResourceState: edgev2alpha1.SyncedResourceAccepted, Reason: reason, Message: message}
}

func incompatible(reason, message string) State {
	return State{SyncedResourceState: edgev2alpha1.SyncedResourceIncompatible, Reason: reason, Message: message}
}

// NotCompared is the state of what mailboxes do not have from the hub.
func NotCompared(native bool) State {
	if native {
		return accepted(ReasonNotCompared, "kcp serves this kind by itself, as the target does; there are no schemas to compare.")
	}
	return accepted(ReasonNotCompared, "The API is that of another export, whose schema the hub does not see.")
}

const (
	// maxListedFindings are how many a message names, shownLength how long it may be.
	maxListedFindings = 5
	maxFindingsLength = 1024
)

// stateForFindings tells what findings mean. In a built-in kind the target is older than the schema that mailboxes have, if it lacks
// fields or values: that is said, but no reason to hold back all the objects that use none of them.
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

// stateForError tells what an error of the target means that was asked about the version in use; ok is false if it may answer otherwise
// when it is asked again.
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
