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

package crd

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
)

// Action is what to do about one definition on a target.
type Action string

const (
	// ActionNone: it is in sync.
	ActionNone Action = "None"
	// ActionInstall creates it.
	ActionInstall Action = "Install"
	// ActionUpdate applies the desired one to the one observed, fenced by its UID.
	ActionUpdate Action = "Update"
	// ActionWait leaves it alone until it changes: it is being deleted, or not established yet.
	ActionWait Action = "Wait"
	// ActionForeign leaves it alone: it is somebody else's.
	ActionForeign Action = "Foreign"
	// ActionNewer leaves it alone: it has versions that the desired one lacks.
	ActionNewer Action = "Newer"
)

// Reasons of a [Decision] and a [State], in the form of condition reasons. Those of failures are with [Installer].
const (
	// ReasonMissing: the target does not have the definition.
	ReasonMissing = "Missing"
	// ReasonInSync: the target has the definition as it must, and serves it.
	ReasonInSync = "InSync"
	// ReasonChanged: the definition on the target is not as it must be.
	ReasonChanged = "Changed"
	// ReasonNotEstablished: the API server does not serve the definition yet, or cannot.
	ReasonNotEstablished = "NotEstablished"
	// ReasonTerminating: the definition is being deleted.
	ReasonTerminating = "Terminating"
	// ReasonNotOwned: the definition is somebody else's and used as it is.
	ReasonNotOwned = "NotOwned"
	// ReasonNewer: the definition has versions that the hub would take away.
	ReasonNewer = "Newer"
	// ReasonVersionNotServed: the definition does not serve the version that objects are written in.
	ReasonVersionNotServed = "VersionNotServed"
)

// Decision is what to do about one definition on a target, and why.
type Decision struct {
	Action Action
	// Reason is one of the Reason constants; Message is a sentence for people.
	Reason, Message string
	// Usable is true if the target serves the version that objects are written in by the definition observed.
	Usable bool
	// Installed is true if the definition observed is the hub's.
	Installed bool
}

// Decide compares what a target must have, as [Desired] returns it, with what it has; nil stands for none. The version is
// the one that objects are written in.
func Decide(desired, observed *apiextensionsv1.CustomResourceDefinition, owner ownership.Owner, version string) Decision {
	if observed == nil {
		return Decision{Action: ActionInstall, Reason: ReasonMissing, Message: "The target does not have the definition."}
	}
	notOurs := checkOwned(observed, owner)
	reason, message := usability(observed, version)
	decision := Decision{Action: ActionNone, Reason: reason, Message: message, Usable: reason == ReasonInSync, Installed: notOurs == nil}
	switch missing := missingVersions(observed, desired); {
	case reason == ReasonTerminating:
		decision.Action = ActionWait
	case notOurs != nil:
		return decision.leaveAlone(ActionForeign, ReasonNotOwned, fmt.Sprintf("The definition on the target is not the hub's: %v", notOurs))
	case len(missing) > 0:
		return decision.leaveAlone(ActionNewer, ReasonNewer, fmt.Sprintf("The definition on the target has %s, which the published one lacks. "+
			"The hub takes no version away: remove it there, also from status.storedVersions, to have the definition brought in sync", strings.Join(missing, ", ")))
	case !isUpToDate(desired, observed):
		decision.Action, decision.Reason, decision.Message = ActionUpdate, ReasonChanged, "The definition on the target is not as it must be."
	case reason == ReasonNotEstablished:
		decision.Action = ActionWait
	}
	return decision
}

// leaveAlone makes of a decision one that leaves the definition alone, though it may be of use.
func (d Decision) leaveAlone(action Action, reason, why string) Decision {
	d.Action = action
	if !d.Usable {
		// What is wrong with it comes first.
		d.Message = why + ". " + d.Message
		return d
	}
	d.Reason, d.Message = reason, why+". It is used as it is."
	return d
}

// usability tells whether a definition can be used for objects in the version.
func usability(observed *apiextensionsv1.CustomResourceDefinition, version string) (reason, message string) {
	switch {
	case observed.DeletionTimestamp != nil:
		return ReasonTerminating, "The definition is being deleted; it is installed again when it is gone."
	case !apihelpers.HasVersionServed(observed, version):
		return ReasonVersionNotServed, fmt.Sprintf("The definition does not serve version %q.", version)
	case !apihelpers.IsCRDConditionTrue(observed, apiextensionsv1.Established):
		return ReasonNotEstablished, "The API server has not established the definition." + namesProblem(observed)
	default:
		return ReasonInSync, "The target serves the definition."
	}
}

// namesProblem says which of the definition's names are taken by another one.
func namesProblem(observed *apiextensionsv1.CustomResourceDefinition) string {
	condition := apihelpers.FindCRDCondition(observed, apiextensionsv1.NamesAccepted)
	if condition == nil || condition.Status != apiextensionsv1.ConditionFalse {
		return ""
	}
	return fmt.Sprintf(" Its names are not accepted: %s (%s).", condition.Message, condition.Reason)
}

// Why a definition with our mark is not ours.
var (
	errForeign      = errors.New("somebody else installed it")
	errNotInstalled = errors.New("it came from a mailbox, as an object")
	errNotLabelled  = errors.New("somebody has taken the hub's label " + InstalledByLabel + " off it")
)

// checkOwned tells why the definition is not one that the owner installed; nil if it is.
func checkOwned(observed *apiextensionsv1.CustomResourceDefinition, owner ownership.Owner) error {
	mark, err := owner.Verify(observed.Annotations, ownership.Self{Group: apiextensionsv1.GroupName, Kind: crdKind, Name: observed.Name})
	switch {
	case errors.Is(err, ownership.ErrUnmarked):
		return errForeign
	case err != nil:
		return err
	case mark.Source.Group != synchubv1alpha1.GroupName || mark.Source.Resource != publishedResources:
		return errNotInstalled
	case observed.Labels[InstalledByLabel] != owner.LabelValue():
		return errNotLabelled
	default:
		return nil
	}
}
