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
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
)

// placementFacts reads the facts about an object of the current workspace. They are nil if the workspace is no workload workspace,
// or if it is an inventory workspace too, and does not have the object: then the question is about a mailbox.
func (o *explainOptions) placementFacts(ctx context.Context, here *cli.Reader, target, resource string, key types.NamespacedName) (*PlacementFacts, error) {
	if !here.Serves("edgeplacements") {
		return nil, nil //nolint:nilnil // the workspace is no workload workspace
	}
	isInventory := here.Serves("synctargets")
	facts := &PlacementFacts{SyncTarget: target, Key: key}
	found, err := o.readPlacedObject(ctx, here, facts, resource)
	switch {
	case isInventory && !found:
		// A mailbox may have it.
		return nil, nil //nolint:nilnil // see the doc comment
	case err != nil:
		return nil, err
	}
	o.workloadRules, o.workloadRulesErr = cli.ReadRules(ctx, here)
	if facts.Key.Namespace != "" {
		facts.Namespace.Value, facts.Namespace.Err = here.Get(ctx, cli.NamespacesResource, types.NamespacedName{Name: facts.Key.Namespace})
	}
	var placements edgev2alpha1.EdgePlacementList
	facts.Placements.Err = here.Client.List(ctx, &placements)
	facts.Placements.Value = placements.Items
	var slices edgev2alpha1.SinglePlacementSliceList
	facts.Slices.Err = here.Client.List(ctx, &slices)
	facts.Slices.Value = slices.Items
	return facts, nil
}

// readPlacedObject reads the object of a workload workspace, and reports whether there is one. The error is the reason why
// the question makes no sense there.
func (o *explainOptions) readPlacedObject(ctx context.Context, here *cli.Reader, facts *PlacementFacts, resource string) (exists bool, err error) {
	found, served, err := o.resolve(here, resource, &facts.Key)
	facts.Resource = found
	switch {
	case meta.IsNoMatchError(err):
		return false, fmt.Errorf("the workload workspace does not serve %s: publish it, and run `kubectl synchub bind compute` again for its claim: %w", resource, err)
	case err != nil:
		return false, err
	}
	if served != nil && served.Namespaced != (facts.Key.Namespace != "") {
		return false, namespaceError(facts.Resource.GroupResource(), served.Namespaced)
	}
	facts.Object.Value, facts.Object.Err = here.Get(ctx, facts.Resource, facts.Key)
	return facts.Object.Value != nil, nil
}

// explainFromWorkload explains an object of a workload workspace. The steps of the mailbox follow if the user may read the
// SyncTarget.
func (o *explainOptions) explainFromWorkload(ctx context.Context, facts *PlacementFacts, resource string) (Explanation, error) {
	explanation := FromWorkload(facts)
	inventory := facts.Inventory()
	if inventory == "" || explanation.Result.State == Stopped {
		return explanation, nil
	}
	reader, err := o.ReaderIn(inventory)
	if err != nil {
		return explanation, err
	}
	syncTarget := &edgev2alpha1.SyncTarget{}
	if err := reader.Client.Get(ctx, types.NamespacedName{Name: facts.SyncTarget}, syncTarget); err != nil {
		// Users of a workload workspace need no rights in the inventory.
		return explanation, nil //nolint:nilerr // see above
	}
	inMailbox, err := o.facts(ctx, reader.Client, syncTarget, resource, facts.ClusterKey())
	if err != nil {
		return explanation, err
	}
	return explanation.Then(Explain(inMailbox)), nil
}
