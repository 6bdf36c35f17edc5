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
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
)

const rolloutHistoryLong = `List the revisions that the hub keeps of an EdgePlacement's objects. Each is from the end of a rollout.

With --revision, the command lists the objects of that revision with their images and their annotation kubernetes.io/change-cause.`

const rolloutHistoryExample = `  kubectl synchub rollout history shop

  # The objects of one revision
  kubectl synchub rollout history shop --revision 3`

// changeCause is the annotation in which users note why they changed an object.
const changeCause = "kubernetes.io/change-cause"

// historyOptions are the flags of rollout history.
type historyOptions struct {
	cli.WorkspaceOptions
	revision int64
}

func newRolloutHistoryCommand(streams genericiooptions.IOStreams) *cobra.Command {
	options := &historyOptions{WorkspaceOptions: cli.NewWorkspaceOptions(streams)}
	command := &cobra.Command{
		Use:     "history PLACEMENT",
		Short:   "List the revisions that the hub keeps of an EdgePlacement's objects",
		Long:    rolloutHistoryLong,
		Example: rolloutHistoryExample,
		Args:    OneEdgePlacement,
		RunE:    func(command *cobra.Command, args []string) error { return options.history(command.Context(), args[0]) },
	}
	options.AddFlags(command)
	command.Flags().Int64Var(&options.revision, "revision", 0, "list the objects of this revision; 0 lists the revisions")
	command.ValidArgsFunction = options.CompletePlacement
	return command
}

func (o *historyOptions) history(ctx context.Context, name string) error {
	workspace, err := o.Client()
	if err != nil {
		return err
	}
	placement, _, err := GetEdgePlacement(ctx, workspace, name)
	if err != nil {
		return err
	}
	revisions, err := Revisions(ctx, workspace, placement)
	if err != nil {
		return err
	}
	return o.print(name, revisions, time.Now())
}

// print lists the revisions, or the objects of the one that the flags name.
func (o *historyOptions) print(name string, revisions []edgev2alpha1.PlacementRevision, now time.Time) error {
	if o.revision != 0 {
		index := slices.IndexFunc(revisions, func(of edgev2alpha1.PlacementRevision) bool { return of.Revision == o.revision })
		if index < 0 {
			return fmt.Errorf("--revision: there is no revision %d; see `kubectl synchub rollout history`", o.revision)
		}
		return o.printObjects(&revisions[index])
	}
	if len(revisions) == 0 {
		_, _ = fmt.Fprintf(o.ErrOut, "The hub keeps no revision of %s yet.\n", name)
		return nil
	}
	table := cli.NewColumns(o.Out)
	table.Line("REVISION\tOBJECTS\tAGE")
	for _, of := range revisions {
		table.Line("%d\t%d\t%s", of.Revision, len(of.Objects), ageOf(&of, now))
	}
	return table.Flush()
}

// ageOf returns the time since the rollout of a revision was complete. The object of the revision may be older.
func ageOf(of *edgev2alpha1.PlacementRevision, now time.Time) string {
	if of.CompletedAt == nil {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(of.CompletedAt.Time))
}

// printObjects lists the objects of a revision.
func (o *historyOptions) printObjects(of *edgev2alpha1.PlacementRevision) error {
	table := cli.NewColumns(o.Out)
	table.Line("KIND\tNAME\tIMAGES\tCHANGE-CAUSE")
	for i := range of.Objects {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(of.Objects[i].Raw); err != nil {
			return fmt.Errorf("the PlacementRevision %s cannot be read: %w", of.Name, err)
		}
		name := strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/")
		table.Line("%s\t%s\t%s\t%s", object.GetKind(), name, strings.Join(imagesOf(object), ","), object.GetAnnotations()[changeCause])
	}
	return table.Flush()
}

// podSpecs are the places where workloads have the spec of their Pods.
var podSpecs = [][]string{{"spec"}, {"spec", "template", "spec"}, {"spec", "jobTemplate", "spec", "template", "spec"}}

// imagesOf returns the images of a workload's containers.
func imagesOf(object *unstructured.Unstructured) (images []string) {
	for _, spec := range podSpecs {
		for _, field := range []string{"initContainers", "containers"} {
			containers, _, _ := unstructured.NestedSlice(object.Object, append(slices.Clone(spec), field)...)
			for _, container := range containers {
				fields, _ := container.(map[string]any)
				if image, _, _ := unstructured.NestedString(fields, "image"); image != "" && !slices.Contains(images, image) {
					images = append(images, image)
				}
			}
		}
	}
	return images
}
