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

package allow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/provider/redact"
)

const (
	// clusterAnnotation is kcp's annotation with the logical cluster of an object, and pathAnnotation the one with the path of a
	// LogicalCluster.
	clusterAnnotation = "kcp.io/cluster"
	pathAnnotation    = "kcp.io/path"
)

var logicalClustersResource = schema.GroupVersionResource{Group: "core.kcp.io", Version: "v1alpha1", Resource: "logicalclusters"}

// describe returns what the workspaces of the changed paths gain or lose.
func (o *allowOptions) describe(ctx context.Context, here *cli.Reader, location *edgev2alpha1.Location, changed []string) (string, error) {
	read, err := o.readInventory(ctx, here, location, changed)
	if err != nil {
		return "", err
	}
	var lines []string
	for _, path := range changed {
		paths := []string{path}
		if parent, isPattern := strings.CutSuffix(path, cli.ChildrenSuffix); isPattern {
			var unread string
			if paths, unread = o.children(ctx, parent); unread != "" {
				lines = append(lines, unread)
			}
		}
		for _, one := range paths {
			lines = append(lines, read.describe(o.readTeam(ctx, read, one))...)
		}
	}
	return strings.Join(lines, "\n"), nil
}

// readInventory reads the current workspace, and adds its state after the change.
func (o *allowOptions) readInventory(ctx context.Context, here *cli.Reader, location *edgev2alpha1.Location, changed []string) (*inventory, error) {
	var syncTargets edgev2alpha1.SyncTargetList
	var locations edgev2alpha1.LocationList
	if err := errors.Join(here.Client.List(ctx, &syncTargets), here.Client.List(ctx, &locations)); err != nil {
		return nil, fmt.Errorf("cannot read the inventory: %w", err)
	}
	cluster := logicalcluster.Name(location.Annotations[clusterAnnotation])
	after := location.DeepCopy()
	o.apply(after, changed)
	read := &inventory{
		cluster: cluster, paths: []string{cluster.String()}, before: newView(cluster, syncTargets.Items, locations.Items),
		location: location, remaining: after.Spec.AvailableTo, remove: o.remove,
	}
	if self, err := here.Get(ctx, logicalClustersResource, types.NamespacedName{Name: "cluster"}); err == nil && self != nil {
		read.paths = append(read.paths, self.GetAnnotations()[pathAnnotation])
	} else if _, path, found := strings.Cut(here.Config.Host, "/clusters/"); found {
		read.paths = append(read.paths, path)
	}
	position := slices.IndexFunc(locations.Items, func(other edgev2alpha1.Location) bool { return other.Name == location.Name })
	if position >= 0 {
		locations.Items[position] = *after
	}
	read.after = newView(cluster, syncTargets.Items, locations.Items)
	return read, nil
}

// children returns the paths of the first children of a workspace. unread is a sentence about the ones that it does not return.
func (o *allowOptions) children(ctx context.Context, parent string) (paths []string, unread string) {
	paths, more, err := o.Children(ctx, parent)
	if err != nil {
		return nil, fmt.Sprintf("The children of %s could not be listed, so it is unknown who gains or loses the Location: %v", parent, redact.Error(err))
	}
	if more > 0 {
		unread = fmt.Sprintf("%s has %d more children, which were not read.", parent, more)
	}
	return paths, unread
}

// readTeam reads what a workspace places. The fields of the result contain what could not be read.
func (o *allowOptions) readTeam(ctx context.Context, in *inventory, path string) *team {
	found := &team{path: path, placed: map[string]map[types.UID]bool{}}
	reader, err := o.ReaderIn(path)
	var placements edgev2alpha1.EdgePlacementList
	if err == nil {
		err = reader.Client.List(ctx, &placements)
	}
	if meta.IsNoMatchError(err) {
		// It does not bind compute yet.
		return found
	}
	if err != nil {
		found.err = redact.Error(err)
		if o.remove {
			o.countCopies(ctx, in, found)
		}
		return found
	}
	found.placements = placements.Items
	var placed edgev2alpha1.SinglePlacementSliceList
	if reader.Client.List(ctx, &placed) != nil {
		// Without the slices, all matching SyncTargets count.
		return found
	}
	for i := range placed.Items {
		uids := map[types.UID]bool{}
		for _, destination := range placed.Items[i].Destinations {
			uids[destination.SyncTargetUID] = true
		}
		found.placed[placed.Items[i].Name] = uids
	}
	return found
}

// countCopies counts the copies of a workspace's objects in the mailboxes of the Location's SyncTargets, by their marks.
func (o *allowOptions) countCopies(ctx context.Context, in *inventory, of *team) {
	of.copies, of.unread = map[string]int{}, map[string]error{}
	cluster, err := o.clusterOf(ctx, of.path)
	for _, name := range in.syncTargets() {
		if err != nil {
			of.unread[name] = errUnknownWorkspace
			continue
		}
		if of.copies[name], of.unread[name] = o.countIn(ctx, name, cluster); of.unread[name] == nil {
			delete(of.unread, name)
		}
	}
}

// clusterOf returns the logical cluster of a workspace, from its parent.
func (o *allowOptions) clusterOf(ctx context.Context, path string) (cluster string, err error) {
	parent, name := logicalcluster.NewPath(path).Split()
	reader, err := o.ReaderIn(parent.String())
	if err != nil {
		return "", err
	}
	workspace, err := reader.Objects.Resource(cli.WorkspacesResource).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	cluster, _, _ = unstructured.NestedString(workspace.Object, "spec", "cluster")
	if cluster == "" {
		return "", errUnknownWorkspace
	}
	return cluster, nil
}

// countIn counts the copies of a logical cluster's objects in the mailbox of a SyncTarget.
func (o *allowOptions) countIn(ctx context.Context, syncTarget, cluster string) (count int, err error) {
	here, err := o.Client()
	if err != nil {
		return 0, err
	}
	found := &edgev2alpha1.SyncTarget{}
	if err := here.Get(ctx, types.NamespacedName{Name: syncTarget}, found); err != nil {
		return 0, redact.Error(err)
	}
	if found.Status.Mailbox == nil {
		return 0, nil
	}
	mailbox, err := o.ReaderIn(found.Status.Mailbox.Workspace)
	if err != nil {
		return 0, err
	}
	lists, err := mailbox.APIs.ServerPreferredResources()
	if err != nil {
		return 0, redact.Error(err)
	}
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list"}}, lists) {
		version, _ := schema.ParseGroupVersion(list.GroupVersion)
		for _, one := range list.APIResources {
			err := mailbox.EachMetadata(ctx, version.WithResource(one.Name), metav1.ListOptions{LabelSelector: ownership.OwnerLabel}, func(object *metav1.PartialObjectMetadata) error {
				if isCopyOf(object, cluster) {
					count++
				}
				return nil
			})
			if err != nil {
				return 0, redact.Error(err)
			}
		}
	}
	return count, nil
}

// isCopyOf reports whether the mark of a mailbox object names a workload workspace. Only the hub can verify the mark.
func isCopyOf(object *metav1.PartialObjectMetadata, cluster string) bool {
	text := object.Annotations[ownership.MarkAnnotation]
	if !ownership.MayBeForPlacements(text) {
		return false
	}
	mark, err := ownership.ParseMark(text)
	return err == nil && mark.Mailbox == cluster
}
