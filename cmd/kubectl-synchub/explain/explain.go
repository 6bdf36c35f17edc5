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

import "fmt"

// steps are the steps in the mailbox and on the target, in order. A function returns nil if its step does not concern the object.
var steps = []struct {
	name    string
	explain func(*observation) *Step
}{
	{StepSyncTarget, explainSyncTarget},
	{StepConnection, explainConnection},
	{StepMailbox, explainMailbox},
	{StepPublished, explainPublished},
	{StepObject, explainObject},
	{StepSelected, explainSelected},
	{StepFilter, explainFilter},
	{StepName, explainName},
	{StepCompatibility, explainCompatibility},
	{StepReport, explainReport},
	{StepTarget, explainTarget},
	{StepContent, explainContent},
	{StepStatus, explainStatus},
}

// Explain returns why the object is on the target, or is not.
func Explain(facts *Facts) Explanation {
	o := newObservation(facts)
	explanation := Explanation{SyncTarget: o.SyncTarget.Name, Group: o.Resource.Group, Resource: o.Resource.Resource, Namespace: o.Key.Namespace, Name: o.Key.Name}
	for _, row := range steps {
		if step := row.explain(o); step != nil {
			step.Step = row.name
			explanation.Steps = append(explanation.Steps, *step)
		}
	}
	presence, text, ifOK := Present, fmt.Sprintf("%s is on %s", o.Key.Name, o.SyncTarget.Name), ", in sync with the mailbox"
	isSeen := o.refErr == nil && o.Target.Err == nil
	switch {
	case !isSeen && (o.refErr != nil || !o.isReportedInSync()):
		presence, text = PresenceUnknown, fmt.Sprintf("Whether %s is on %s cannot be seen", o.Key.Name, o.SyncTarget.Name)
	case isSeen && o.Target.Value == nil:
		presence, text, ifOK = Absent, fmt.Sprintf("%s is not on %s", o.Key.Name, o.SyncTarget.Name), ": it has run to completion there"
	case isSeen && o.copied == nil && o.source == nil:
		text = fmt.Sprintf("%s has an object %s that did not come from the mailbox", o.SyncTarget.Name, o.ref.Name)
	}
	switch {
	case o.source != nil:
		ifOK = ", where it came up from"
	case !o.goesDown:
		ifOK = ""
	}
	explanation.Result, explanation.Related = resultOf(explanation.Steps, presence, text, ifOK), o.related()
	return explanation
}
