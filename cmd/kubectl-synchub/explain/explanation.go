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
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
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

// Names of the steps, in order.
const (
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
	// What is the finding. Do says how to solve the problem.
	What string `json:"what"`
	Do   string `json:"do,omitempty"`
}

// Presence says whether the target has an object.
type Presence string

const (
	Present         Presence = "Yes"
	Absent          Presence = "No"
	PresenceUnknown Presence = "Unknown"
)

// Result is the answer: the first step that stops the object, if any.
type Result struct {
	// OnTarget says whether the target has an object of this name.
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
}

// Explain says why the object is on the target, or is not.
func Explain(facts *Facts) Explanation {
	e := newExplainer(facts)
	for _, step := range []func(){
		e.explainSyncTarget, e.explainConnection, e.explainMailbox, e.explainPublished, e.explainObject, e.explainSelection, e.explainFilter,
		e.explainName, e.explainCompatibility, e.explainReport, e.explainTarget, e.explainContent, e.explainStatus,
	} {
		step()
	}
	return Explanation{
		SyncTarget: facts.SyncTarget.Name,
		Group:      facts.Resource.Group, Resource: facts.Resource.Resource,
		Namespace: facts.Key.Namespace, Name: facts.Key.Name,
		Steps: e.steps, Result: e.result(),
	}
}

// result returns the result of the steps.
func (e *explainer) result() Result {
	presence := e.presence()
	text := e.presenceMessage(presence)
	result := e.stepList.result(presence, text)
	if result.Step != "" {
		return result
	}
	if e.source != nil {
		result = e.stepList.result(presence, text+", where it came up from")
	}
	switch {
	case result.State != OK || !e.goesDown():
	case presence == Absent && e.hasFinished():
		result.Text += ": it has run to completion there"
	default:
		result.Text += ", in sync with the mailbox"
	}
	return result
}

func (e *explainer) presence() Presence {
	switch {
	case e.targetRefErr != nil || e.facts.Target.Err != nil:
		return PresenceUnknown
	case e.facts.Target.Value == nil:
		return Absent
	default:
		return Present
	}
}

// presenceMessage describes whether the object is on the target.
func (e *explainer) presenceMessage(presence Presence) string {
	object, target := e.facts.Key.Name, e.facts.SyncTarget.Name
	switch {
	case presence == PresenceUnknown:
		return fmt.Sprintf("Whether %s is on %s cannot be seen", object, target)
	case presence == Absent:
		return fmt.Sprintf("%s is not on %s", object, target)
	case e.observed == nil && e.source == nil:
		return fmt.Sprintf("%s has an object %s that did not come from the mailbox", target, e.targetRef.Name)
	default:
		return fmt.Sprintf("%s is on %s", object, target)
	}
}

// stepList collects steps.
type stepList struct{ steps []Step }

func (l *stepList) addStep(step string, state State, what string, values ...any) *Step {
	l.steps = append(l.steps, Step{Step: step, State: state, What: fmt.Sprintf(what, values...)})
	return &l.steps[len(l.steps)-1]
}

// result returns the first step that stops the object. A step with an unknown outcome stops nothing.
func (l *stepList) result(presence Presence, presenceMessage string) Result {
	result := Result{OnTarget: presence, State: OK, Text: presenceMessage}
	var unknown []Step
	for _, step := range l.steps {
		switch step.State {
		case Stopped, Waiting:
			result.Step, result.State = step.Step, step.State
			result.Text += ": " + step.What
			if step.Do != "" {
				result.Text += "; " + step.Do
			}
			return result
		case Unknown:
			unknown = append(unknown, step)
		case OK:
		}
	}
	if len(unknown) > 0 {
		result.State = Unknown
		result.Text += fmt.Sprintf(". Nothing that could be seen is in its way, but not all could: %s: %s", unknown[0].Step, unknown[0].What)
	}
	return result
}

// withReason sets the reason.
func (s *Step) withReason(reason string) *Step {
	s.Reason = reason
	return s
}

// withAdvice sets the advice.
func (s *Step) withAdvice(what string, values ...any) {
	s.Do = fmt.Sprintf(what, values...)
}

// Observed is the result of a read.
type Observed[T any] struct {
	// Value is the result, or the zero value if nothing exists.
	Value T
	// Err says why the result is unknown.
	Err error
}

// Facts are all inputs of Explain.
type Facts struct {
	Now        time.Time
	SyncTarget *edgev2alpha1.SyncTarget
	// Hub is the UID of the provider workspace's LogicalCluster. If it is empty, marks tell the hub.
	Hub types.UID
	// ProtectedNamespaces are the hub's. If there are none, only its reports show them.
	ProtectedNamespaces []string

	// Resource and Key name the object in the mailbox.
	Resource schema.GroupResource
	Key      types.NamespacedName
	// Served is the API as the mailbox serves it, or nil if the mailbox does not serve it. Its fields Native and
	// Exported are ignored.
	Served Observed[*publishedresource.API]
	// Published are all PublishedResources. With an error, there may be others.
	Published Observed[[]synchubv1alpha1.PublishedResource]
	// Configs of the mailbox.
	Configs Observed[Configs]
	// Object and Namespace are in the mailbox. They are nil if they do not exist.
	Object, Namespace Observed[*unstructured.Unstructured]
	// Events about the object in the mailbox, as far as the user may read them.
	Events []corev1.Event
	// Target is the object at [Facts.TargetRef] on the target, or nil.
	Target Observed[*unstructured.Unstructured]
}

// Configs select objects in a mailbox.
type Configs struct {
	SyncerConfigs   []*edgev2alpha1.SyncerConfig
	EdgeSyncConfigs []*edgev2alpha1.EdgeSyncConfig
}

// TargetRef is the location of an object on the target.
type TargetRef struct {
	plan.TargetAPI
	types.NamespacedName
}

// displayName returns the name of the object on the target.
func (r TargetRef) displayName() string { return strings.TrimPrefix(r.String(), "/") }

// API returns the mailbox's resource, in the synced version if that is known.
func (f *Facts) API() schema.GroupVersionResource {
	return newExplainer(f).resource().GroupVersionResource
}

// TargetRef returns the location of the object on the target. The error says why the location is unknown. The result
// may lack the version, and either the resource name or the kind.
func (f *Facts) TargetRef() (TargetRef, error) {
	e := newExplainer(f)
	return e.targetRef, e.targetRefErr
}
