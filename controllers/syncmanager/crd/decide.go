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
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

// Action is the decision about one CRD on a target.
type Action string

const (
	// ActionNone: the CRD is in sync.
	ActionNone Action = "None"
	// ActionInstall creates the CRD.
	ActionInstall Action = "Install"
	// ActionUpdate applies the desired CRD to the observed one. The request carries the UID of the observed CRD.
	ActionUpdate Action = "Update"
	// ActionWait leaves the CRD alone until it changes: it is being deleted, or is not established yet.
	ActionWait Action = "Wait"
	// ActionForeign leaves the CRD alone: the hub does not own it.
	ActionForeign Action = "Foreign"
	// ActionNewer leaves the CRD alone: it has versions that the desired one lacks.
	ActionNewer Action = "Newer"
)

// Reasons of a [Decision] and a [State], in the form of condition reasons. The reasons of failures are declared in errors.go.
const (
	// ReasonMissing: the target does not have the CRD.
	ReasonMissing = "Missing"
	// ReasonInSync: the CRD on the target equals the desired one, and the target serves it.
	ReasonInSync = "InSync"
	// ReasonChanged: the CRD on the target differs from the desired one.
	ReasonChanged = "Changed"
	// ReasonNotEstablished: the API server does not serve the CRD yet, or cannot.
	ReasonNotEstablished = "NotEstablished"
	// ReasonNamesNotAccepted: another CRD of the target has names of the CRD.
	ReasonNamesNotAccepted = "NamesNotAccepted"
	// ReasonTerminating: the CRD is being deleted.
	ReasonTerminating = "Terminating"
	// ReasonNotOwned: the hub does not own the CRD, and uses it as it is.
	ReasonNotOwned = "NotOwned"
	// ReasonNewer: the CRD has versions that the hub would remove.
	ReasonNewer = "Newer"
	// ReasonVersionNotServed: the CRD does not serve the version that the hub writes objects in.
	ReasonVersionNotServed = "VersionNotServed"
)

// Decision is the action for one CRD on a target, and the reason.
type Decision struct {
	Action Action
	// Reason is one of the Reason constants. Message is a sentence for users.
	Reason, Message string
	// Usable is true if the observed CRD serves the version that the hub writes objects in.
	Usable bool
	// Installed is true if the hub owns the observed CRD.
	Installed bool
}

// Decide compares the CRD that a target must have, from [Desired], with the observed one, nil if there is none.
// version is the version that the hub writes objects in.
func Decide(desired, observed *apiextensionsv1.CustomResourceDefinition, owner ownership.Owner, version string) Decision {
	if observed == nil {
		return Decision{Action: ActionInstall, Reason: ReasonMissing, Message: "The target does not have the definition."}
	}
	notOwned := checkOwned(observed, owner)
	reason, message := usability(observed, version)
	decision := Decision{Action: ActionNone, Reason: reason, Message: message, Usable: reason == ReasonInSync, Installed: notOwned == nil}
	switch missing := missingVersions(observed, desired); {
	case reason == ReasonTerminating:
		decision.Action = ActionWait
	case notOwned != nil:
		return decision.leaveAlone(ActionForeign, ReasonNotOwned, fmt.Sprintf("The definition on the target is not the hub's: %v", notOwned))
	case len(missing) > 0:
		return decision.leaveAlone(ActionNewer, ReasonNewer, fmt.Sprintf("The definition on the target has %s, which the published one lacks. "+
			"The hub removes no version. To sync the definition, remove the version there, also from status.storedVersions", strings.Join(missing, ", ")))
	case !isUpToDate(desired, observed):
		decision.Action, decision.Reason, decision.Message = ActionUpdate, ReasonChanged, "The definition on the target is not as it must be."
	case reason == ReasonNotEstablished, reason == ReasonNamesNotAccepted:
		decision.Action = ActionWait
	}
	return decision
}

// leaveAlone returns the decision with an action that does not change the CRD. The CRD may still be usable.
func (d Decision) leaveAlone(action Action, reason, why string) Decision {
	d.Action = action
	if !d.Usable {
		// The reason why the CRD is unusable takes precedence.
		d.Message = why + ". " + d.Message
		return d
	}
	d.Reason, d.Message = reason, why+". It is used as it is."
	return d
}

// usability returns ReasonInSync if a CRD can be used for objects in the version, else the reason why not.
func usability(observed *apiextensionsv1.CustomResourceDefinition, version string) (reason, message string) {
	switch {
	case observed.DeletionTimestamp != nil:
		return ReasonTerminating, "The definition is being deleted; it is installed again when it is gone."
	case !apihelpers.HasVersionServed(observed, version):
		return ReasonVersionNotServed, fmt.Sprintf("The definition does not serve version %q.", version)
	case !apihelpers.IsCRDConditionTrue(observed, apiextensionsv1.Established):
		if problem := namesProblem(observed); problem != "" {
			return ReasonNamesNotAccepted, "The API server has not established the definition." + problem
		}
		return ReasonNotEstablished, "The API server has not established the definition."
	default:
		return ReasonInSync, "The target serves the definition."
	}
}

// namesProblem returns which names of the CRD another CRD has; empty if there are none.
func namesProblem(observed *apiextensionsv1.CustomResourceDefinition) string {
	condition := apihelpers.FindCRDCondition(observed, apiextensionsv1.NamesAccepted)
	if condition == nil || condition.Status != apiextensionsv1.ConditionFalse {
		return ""
	}
	return fmt.Sprintf(" Its names are not accepted: %s (%s).", condition.Message, condition.Reason)
}

// Reasons why the hub does not own a CRD that has its mark.
var (
	errForeign      = errors.New("somebody else installed it")
	errNotInstalled = errors.New("it came from a mailbox, as an object")
	errNotLabelled  = errors.New("somebody has taken the hub's label " + ownership.InstalledByLabel + " off it")
)

// checkOwned returns nil if the owner installed the CRD, else an error with the reason.
func checkOwned(observed *apiextensionsv1.CustomResourceDefinition, owner ownership.Owner) error {
	mark, err := owner.Verify(observed.Annotations, ownership.Self{Group: apiextensionsv1.GroupName, Kind: crdKind, Name: observed.Name})
	switch {
	case errors.Is(err, ownership.ErrUnmarked):
		return errForeign
	case err != nil:
		return err
	case mark.Source.Group != synchubv1alpha1.GroupName || mark.Source.Resource != publishedResources:
		return errNotInstalled
	case observed.Labels[ownership.InstalledByLabel] != owner.LabelValue():
		return errNotLabelled
	default:
		return nil
	}
}
