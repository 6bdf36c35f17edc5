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

package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/objectdiff"
	"github.com/synchub-dev/synchub/controllers/placement/revision"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
)

const rolloutUndoLong = `Give the objects of an EdgePlacement of the current workspace their former content.

The hub keeps the objects in a PlacementRevision each time a rollout is complete, if the EdgePlacement has a rolloutStrategy.
The command takes the newest revision that differs from the workspace, or the revision of --to-revision. It changes the objects
with your own rights. The change then rolls out as any other.

The command creates deleted objects again. Objects that were added since stay. Revisions have no Secrets, so Secrets stay as
they are.

A dry run changes nothing. It prints how the objects differ from their former content, as kubectl diff does.`

// undoOptions are the flags of rollout undo.
type undoOptions struct {
	*cli.InventoryOptions
	toRevision int64
	cli.WaitFlags
}

func newRolloutUndoCommand(streams genericiooptions.IOStreams) *cobra.Command {
	options := &undoOptions{InventoryOptions: cli.NewInventoryOptions(streams)}
	command := &cobra.Command{
		Use:     "undo PLACEMENT",
		Short:   "Give the objects of an EdgePlacement their former content",
		Long:    rolloutUndoLong,
		Example: "  kubectl synchub rollout undo shop --dry-run=server",
		RunE:    func(command *cobra.Command, args []string) error { return options.run(command.Context(), args[0]) },
	}
	options.AddFlags(command)
	command.Flags().Int64Var(&options.toRevision, "to-revision", 0, "number of the revision; 0 takes the newest one that differs from the workspace")
	options.AddWait(command, "the change is rolled out", false, defaultRolloutTimeout)
	command.Args, command.ValidArgsFunction = OneEdgePlacement, options.CompletePlacement
	return command
}

// Revisions returns the revisions of an EdgePlacement, the oldest first.
func Revisions(ctx context.Context, workspace client.Client, placement *edgev2alpha1.EdgePlacement) ([]edgev2alpha1.PlacementRevision, error) {
	var list edgev2alpha1.PlacementRevisionList
	err := workspace.List(ctx, &list, client.MatchingLabels{edgev2alpha1.LabelPlacement: string(placement.UID)})
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("this workspace has no PlacementRevisions: the operator of the hub runs `kubectl synchub init` again: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list the PlacementRevisions: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b edgev2alpha1.PlacementRevision) int { return cmp.Compare(a.Revision, b.Revision) })
	return list.Items, nil
}

func (o *undoOptions) run(ctx context.Context, name string) error {
	if err := cmp.Or(o.Complete(), o.CheckTimeout()); err != nil {
		return err
	}
	reader, err := o.Reader()
	if err != nil {
		return err
	}
	placement, _, err := GetEdgePlacement(ctx, reader.Client, name)
	if err != nil {
		return err
	}
	revisions, err := Revisions(ctx, reader.Client, placement)
	if err != nil {
		return err
	}
	compiled, err := rules.Compile(placement)
	if err != nil {
		return err
	}
	restoration, err := o.plan(ctx, reader, compiled, revisions)
	if err != nil {
		return err
	}
	if len(restoration.objects) == 0 {
		return fmt.Errorf("the objects are as in revision %d: nothing to undo", restoration.revision)
	}
	o.Note(fmt.Sprintf("Going back to revision %d.", restoration.revision))
	if err := o.restoreAll(ctx, restoration.objects); err != nil {
		return err
	}
	return awaitRollout(ctx, o.InventoryOptions, name, o.WaitFlags)
}

// restoration is what has to be done to go back to a revision.
type restoration struct {
	revision int64
	objects  []restoredObject
}

// restoredObject is an object that has to be created, or changed.
type restoredObject struct {
	resource dynamic.ResourceInterface
	// object is the object with its former content. present is the object as it is now; nil if there is none.
	object, present *unstructured.Unstructured
}

// plan returns what has to be done for the revision that the flags name, or for the newest one that differs from the workspace.
func (o *undoOptions) plan(ctx context.Context, reader *cli.Reader, placement *rules.Placement, revisions []edgev2alpha1.PlacementRevision) (found restoration, err error) {
	if len(revisions) == 0 {
		return found, errors.New("the hub keeps no revision of these objects: it makes one when a rollout is complete, if the EdgePlacement has a rolloutStrategy")
	}
	for _, of := range slices.Backward(revisions) {
		if o.toRevision != 0 && of.Revision != o.toRevision {
			continue
		}
		found = restoration{revision: of.Revision}
		if found.objects, err = differences(ctx, reader, placement, &of); err != nil || len(found.objects) > 0 || o.toRevision != 0 {
			return found, err
		}
	}
	if o.toRevision != 0 {
		return found, fmt.Errorf("--to-revision: there is no revision %d; see `kubectl synchub rollout history`", o.toRevision)
	}
	return found, nil
}

// differences returns the objects of a revision that the workspace lacks or has with another content. Objects that the placement does not
// select do not count: somebody else may have written the revision, to have them made by a user with more rights.
func differences(ctx context.Context, r *cli.Reader, placement *rules.Placement, of *edgev2alpha1.PlacementRevision) (found []restoredObject, err error) {
	namespaceLabels := namespaceLabels(ctx, r)
	for i := range of.Objects {
		content := &unstructured.Unstructured{}
		if err := content.UnmarshalJSON(of.Objects[i].Raw); err != nil {
			return nil, fmt.Errorf("the PlacementRevision %s cannot be read: %w", of.Name, err)
		}
		kind := content.GroupVersionKind()
		mapping, err := r.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return nil, fmt.Errorf("the workspace does not have the API of %s %s any more: %w", kind.Kind, content.GetName(), err)
		}
		if !selects(placement, mapping.Resource, content, namespaceLabels) || !revision.Keeps(mapping.Resource.GroupResource()) {
			continue
		}
		var resource dynamic.ResourceInterface = r.Objects.Resource(mapping.Resource)
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			resource = r.Objects.Resource(mapping.Resource).Namespace(content.GetNamespace())
		}
		present, err := resource.Get(ctx, content.GetName(), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			found = append(found, restoredObject{resource: resource, object: content})
		case err != nil:
			return nil, fmt.Errorf("cannot compare %s %s: %w", kind.Kind, content.GetName(), err)
		default:
			if restored := revision.Restore(content, present); restored != nil {
				found = append(found, restoredObject{resource: resource, object: restored, present: present})
			}
		}
	}
	return found, nil
}

// restoreAll creates or changes objects. For people, a dry run prints how they differ from the present objects.
func (o *undoOptions) restoreAll(ctx context.Context, objects []restoredObject) error {
	var problems []error
	var changes []objectdiff.Change
	for _, one := range objects {
		restored, err := o.restore(ctx, one)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		change := objectdiff.Change{To: revision.Content(restored).Object}
		if one.present != nil {
			change.From = revision.Content(one.present).Object
		}
		changes = append(changes, change)
	}
	if o.DryRun != cli.DryRunNone && *o.Output.OutputFormat == "" && len(changes) > 0 {
		problems = append(problems, objectdiff.Print(o.IOStreams, changes))
	}
	return errors.Join(problems...)
}

// restore creates or changes one object, and returns it as it is then. A change since the command compared the object is a conflict.
func (o *undoOptions) restore(ctx context.Context, one restoredObject) (restored *unstructured.Unstructured, err error) {
	dryRun := cli.DryRunOption(o.DryRun)
	done := "restored"
	if one.present == nil {
		done = "created"
	}
	switch {
	case o.DryRun == cli.DryRunClient:
		restored = one.object
	case one.present == nil:
		restored, err = one.resource.Create(ctx, one.object, metav1.CreateOptions{DryRun: dryRun, FieldManager: "kubectl-synchub"})
	default:
		restored, err = one.resource.Update(ctx, one.object, metav1.UpdateOptions{DryRun: dryRun, FieldManager: "kubectl-synchub"})
	}
	if err != nil {
		return nil, fmt.Errorf("cannot restore %s %s: %w", one.object.GetKind(), one.object.GetName(), err)
	}
	return restored, o.Print(one.object, done)
}
