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

package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync/observe"
	"github.com/synchub-dev/synchub/controllers/plan"
)

// State is the outcome of a step.
type State string

const (
	// OK: the step lets the object pass.
	OK State = "ok"
	// Stopped: the step stops the object until somebody changes something.
	Stopped State = "stopped"
	// Waiting: the step stops the object for now, and should let it pass without intervention.
	Waiting State = "waiting"
	// Unknown: the outcome cannot be determined.
	Unknown State = "unknown"
)

// Names of the steps, in order. The first four are in a workload workspace.
const (
	StepWorkload      = "Workload"
	StepPlacement     = "Placement"
	StepDestination   = "Destination"
	StepProgress      = "Progress"
	StepSyncTarget    = "SyncTarget"
	StepConnection    = "Connection"
	StepMailbox       = "Mailbox"
	StepPublished     = "Published"
	StepObject        = "Object"
	StepSelected      = "Selected"
	StepFilter        = "Filter"
	StepName          = "Name"
	StepCompatibility = "Compatibility"
	StepReport        = "Report"
	StepTarget        = "Target"
	StepContent       = "Content"
	StepStatus        = "Status"
)

// Step is one check of the sync of an object.
type Step struct {
	Step  string `json:"step"`
	State State  `json:"state"`
	// Reason is a constant of the hub, if the hub has reported one.
	Reason string `json:"reason,omitempty"`
	// What describes the finding, and Do the way to solve the problem.
	What string `json:"what"`
	Do   string `json:"do,omitempty"`
}

// Presence is whether the target has an object.
type Presence string

const (
	Present         Presence = "Yes"
	Absent          Presence = "No"
	PresenceUnknown Presence = "Unknown"
)

// Result is the answer: the first step that stops the object, if any.
type Result struct {
	// OnTarget is whether the target has an object of this name.
	OnTarget Presence `json:"onTarget"`
	// Step is the name of the step that stops the object. It is empty if no step does.
	Step  string `json:"step,omitempty"`
	State State  `json:"state"`
	// Text describes the result to people.
	Text string `json:"text"`
}

// Explanation is the full explanation for one object and one target.
type Explanation struct {
	SyncTarget string `json:"syncTarget"`
	// Group, Resource, Namespace and Name of the object in the mailbox.
	Group     string `json:"group,omitempty"`
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Steps     []Step `json:"steps"`
	Result    Result `json:"result"`
	// Related are the objects that the hub syncs together with the object.
	Related []Related `json:"related,omitempty"`
}

// Then returns the explanation with the steps of another one after its own. The other one is about the mailbox, and decides
// unless a step in the workload workspace stops the object.
func (e Explanation) Then(inMailbox Explanation) Explanation {
	e.Steps, e.Related = slices.Concat(e.Steps, inMailbox.Steps), inMailbox.Related
	if e.Result.State != Stopped {
		e.Result = inMailbox.Result
	}
	return e
}

// resultOf returns the first step that stops the object. A step with an unknown outcome stops nothing. ifOK completes the text if no step
// stops the object.
func resultOf(steps []Step, presence Presence, text, ifOK string) Result {
	result := Result{OnTarget: presence, State: OK, Text: text + ifOK}
	for _, step := range steps {
		switch {
		case step.State == Stopped, step.State == Waiting:
			if step.Do != "" {
				step.What += "; " + step.Do
			}
			return Result{OnTarget: presence, Step: step.Step, State: step.State, Text: text + ": " + step.What}
		case step.State == Unknown && result.State == OK:
			result.State = Unknown
			result.Text = fmt.Sprintf("%s. Nothing that could be seen is in its way, but not all could: %s: %s", text, step.Step, step.What)
		}
	}
	return result
}

// newStep returns a step without its name. The reason may be empty.
func newStep(state State, reason, what string, values ...any) *Step {
	return &Step{State: state, Reason: reason, What: fmt.Sprintf(what, values...)}
}

// errorStep returns the step for an error for which the hub would fail.
func errorStep(err error) *Step {
	return newStep(Stopped, cmp.Or(observe.ReasonFor(err), plan.ReasonFailed), "%s", inOneLine(err))
}

// conditionStep returns the step for a condition that is not True. A reason that describes an ongoing start is Waiting, because it ends
// without intervention.
func conditionStep(condition *metav1.Condition) *Step {
	state := Stopped
	if slices.Contains([]string{edgev2alpha1.ReasonConnecting, "Initializing", "Starting"}, condition.Reason) {
		state = Waiting
	}
	return newStep(state, condition.Reason, "%s", sentence(condition.Message))
}

// advise adds advice how to solve the problem.
func (s *Step) advise(what string, values ...any) *Step {
	s.Do = fmt.Sprintf(what, values...)
	return s
}

// sentence returns a message in a form that fits into a sentence.
func sentence(message string) string {
	return strings.TrimSuffix(strings.Join(strings.Fields(message), " "), ".")
}

func inOneLine(err error) string { return sentence(err.Error()) }

// maxListed is the maximum number of names in a message.
const maxListed = 3
