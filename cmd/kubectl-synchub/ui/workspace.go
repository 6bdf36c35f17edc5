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

package ui

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
)

// hubComponent is the reporter of the hub's events.
const hubComponent = "synchub"

// workspace is a workspace that the page shows: an inventory workspace, a workload workspace, or both.
type workspace struct {
	// name is its path or its logical cluster, as the user or their kubeconfig names it.
	name    string
	options cli.WorkspaceOptions
	// reader makes the requests of pages about objects. Its discovery is cached.
	reader                  *cli.Reader
	isInventory, isWorkload bool

	targets    *store[*edgev2alpha1.SyncTarget]
	placements *store[*edgev2alpha1.EdgePlacement]
	slices     *store[*edgev2alpha1.SinglePlacementSlice]
	// events are the hub's, about all kinds.
	events *store[*corev1.Event]
}

// openWorkspace finds out what a workspace serves. Without a path, it is the one of the kubeconfig.
func openWorkspace(path string, options cli.WorkspaceOptions) (*workspace, error) {
	reader, err := options.Reader()
	if err != nil {
		return nil, err
	}
	w := &workspace{name: path, options: options, reader: reader}
	if path == "" {
		w.name = nameOf(reader.Config.Host)
	}
	var inventoryErr, workloadErr error
	w.isInventory, inventoryErr = serves(reader, "synctargets")
	w.isWorkload, workloadErr = serves(reader, "edgeplacements")
	switch {
	case w.isInventory, w.isWorkload:
		return w, nil
	case inventoryErr != nil || workloadErr != nil:
		return nil, fmt.Errorf("cannot read the APIs of the workspace %s: %w", w.name, errors.Join(inventoryErr, workloadErr))
	default:
		return nil, fmt.Errorf("the workspace %s has neither SyncTargets nor EdgePlacements: choose an inventory workspace or a workload workspace", w.name)
	}
}

// nameOf returns the workspace in the address of a server. A server that is no kcp has none.
func nameOf(host string) string {
	server, err := url.Parse(host)
	if err != nil {
		return "current"
	}
	_, name, found := strings.Cut(server.Path, "/clusters/")
	if !found {
		return "current"
	}
	return strings.Trim(name, "/")
}

func serves(reader *cli.Reader, resource string) (bool, error) {
	_, err := reader.Mapper.ResourceFor(edgev2alpha1.SchemeGroupVersion.WithResource(resource))
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	return err == nil, err
}

// watchAll starts the watches of all workspaces: one for each kind, for all pages. It returns once pages have something to show.
func watchAll(ctx context.Context, all []*workspace, changed *changes) error {
	for _, w := range all {
		if err := w.watch(ctx, changed.add); err != nil {
			return err
		}
	}
	for _, w := range all {
		w.awaitReady(ctx)
	}
	return ctx.Err()
}

func (w *workspace) watch(ctx context.Context, changed func()) (err error) {
	from, everything := w.reader.Client, fields.Everything()
	byHub := fields.OneTermEqualSelector("reportingComponent", hubComponent)
	w.events, err = watchKind(ctx, from, "Events", &corev1.Event{}, func() client.ObjectList { return &corev1.EventList{} }, byHub, changed)
	if err == nil && w.isInventory {
		w.targets, err = watchKind(ctx, from, "SyncTargets", &edgev2alpha1.SyncTarget{}, func() client.ObjectList { return &edgev2alpha1.SyncTargetList{} }, everything, changed)
	}
	if err != nil || !w.isWorkload {
		return err
	}
	w.placements, err = watchKind(ctx, from, "EdgePlacements", &edgev2alpha1.EdgePlacement{}, func() client.ObjectList { return &edgev2alpha1.EdgePlacementList{} }, everything, changed)
	if err != nil {
		return err
	}
	w.slices, err = watchKind(ctx, from, "SinglePlacementSlices", &edgev2alpha1.SinglePlacementSlice{}, func() client.ObjectList { return &edgev2alpha1.SinglePlacementSliceList{} }, everything, changed)
	return err
}

func (w *workspace) awaitReady(ctx context.Context) {
	w.targets.awaitReady(ctx)
	w.placements.awaitReady(ctx)
	w.slices.awaitReady(ctx)
	w.events.awaitReady(ctx)
}

// problems describe why the content of the watches may be missing or old.
func (w *workspace) problems() (found []string) {
	add := func(problem string) {
		if problem != "" {
			found = append(found, w.name+": "+problem)
		}
	}
	add(w.targets.problem())
	add(w.placements.problem())
	add(w.slices.problem())
	add(w.events.problem())
	return found
}

// eventsAbout returns the events whose subject meets a condition, the newest first.
func (w *workspace) eventsAbout(isWanted func(*corev1.ObjectReference) bool) (found []*corev1.Event) {
	for _, event := range w.events.list() {
		if isWanted(&event.InvolvedObject) {
			found = append(found, event)
		}
	}
	slices.SortFunc(found, newestFirst)
	return found
}
