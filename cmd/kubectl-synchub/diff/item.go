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

package diff

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/explain"
)

// item is an object of the mailbox of a cluster, before and after a change.
type item struct {
	cluster *cluster
	// key names the object in the mailbox.
	key types.NamespacedName
	// before and after have no object if the mailbox does not have it then.
	before, after side
	// namespace is the object's namespace in the mailbox; nil if it is unknown.
	namespace *unstructured.Unstructured
	// err is the reason why the object cannot be in the mailbox after the change.
	err error
	// staysWithoutSource is true if the copy stays on the cluster although it leaves the mailbox.
	staysWithoutSource bool
	// fromMark is true if the mailbox cannot be read. Then the object's UID and version are those in the mark of its copy.
	fromMark bool
	// onlyRules is true if only what the change itself does is of interest: an object that the rules make the same copy of is left out.
	onlyRules bool
}

// side is an object of a mailbox, and the rules for it.
type side struct {
	object *unstructured.Unstructured
	rules  *ruleSet
}

// ruleSet are the rules for the objects of a resource in a mailbox.
type ruleSet struct {
	// facts have no object.
	facts     explain.Facts
	predictor *explain.Predictor
}

func newRuleSet(facts explain.Facts) *ruleSet {
	return &ruleSet{facts: facts, predictor: explain.NewPredictor(&facts)}
}

// factsOf returns the facts about the object of a side, without the target's object.
func (it *item) factsOf(of side) explain.Facts {
	facts := of.rules.facts
	facts.Key, facts.Object.Value, facts.Namespace.Value = it.key, of.object, it.namespace
	return facts
}

// predict returns what the hub does with the object of a side, if the target has an object at its place.
func (it *item) predict(of side, onTarget *unstructured.Unstructured) explain.Prediction {
	facts := it.factsOf(of)
	facts.Target.Value = onTarget
	prediction := of.rules.predictor.Predict(&facts)
	if !it.fromMark || onTarget == nil || prediction.Copied == nil {
		return prediction
	}
	mark := prediction.Copied.Mark
	if facts.SyncTarget.Status.Mailbox == nil {
		known := facts.SyncTarget.DeepCopy()
		known.Status.Mailbox = &edgev2alpha1.MailboxStatus{Cluster: mark.Mailbox}
		facts.SyncTarget = known
	}
	if mark.Source.Namespace != it.key.Namespace || mark.Source.Name != it.key.Name {
		return prediction
	}
	object := of.object.DeepCopy()
	object.SetUID(mark.Source.UID)
	facts.Object.Value = object
	return of.rules.predictor.Predict(&facts)
}
