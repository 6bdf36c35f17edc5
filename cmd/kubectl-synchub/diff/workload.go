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
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/explain"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/tenancy"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
)

// workload is a workload workspace, as far as the user may read it.
type workload struct {
	*options
	here        *cli.Reader
	inventories inventories
	self        rules.Workspace
	// hub, protected and published are the hub's rules. publishedErr is why some are missing.
	hub          types.UID
	protected    []string
	published    []synchubv1alpha1.PublishedResource
	publishedErr error

	placements []*selecting
	clusters   map[destinationKey]*cluster
	ruleSets   map[ruleSetKey]*ruleSet
	copier     copier
	// namespaces are Namespaces by name, with nil for those that cannot be read.
	namespaces map[string]*unstructured.Unstructured
}

// selecting is an EdgePlacement with its destinations.
type selecting struct {
	*rules.Placement
	destinations []edgev2alpha1.SinglePlacement
}

// destinationKey names a SyncTarget.
type destinationKey struct{ inventory, name string }

// ruleSetKey names a resource in the mailbox of a SyncTarget.
type ruleSetKey struct {
	destinationKey
	resource schema.GroupResource
}

// newWorkload reads the EdgePlacements of the current workspace with their destinations, and the rules.
func newWorkload(ctx context.Context, o *options, here *cli.Reader) (*workload, error) {
	w := &workload{
		options: o, here: here, inventories: inventories{options: o},
		clusters: map[destinationKey]*cluster{}, ruleSets: map[ruleSetKey]*ruleSet{}, namespaces: map[string]*unstructured.Unstructured{},
	}
	rulesStatus, err := cli.ReadRules(ctx, here)
	if err != nil {
		return nil, err
	}
	w.hub, w.protected = rulesStatus.Hub, rulesStatus.ProtectedNamespaces
	w.published, w.publishedErr = cli.PublishedByRules(rulesStatus, nil)
	shown, err := here.Get(ctx, edgev2alpha1.SchemeGroupVersion.WithResource("syncrules"), types.NamespacedName{Name: edgev2alpha1.SyncRulesName})
	if err != nil || shown == nil {
		return nil, fmt.Errorf("the SyncRules of the workspace cannot be read: %w", err)
	}
	w.self.Cluster = logicalcluster.From(shown)
	// Without the path, only Locations of the workspace itself are known to be available to it.
	if logical, err := here.Get(ctx, logicalClusters, types.NamespacedName{Name: "cluster"}); err == nil && logical != nil {
		w.self.Path = logical.GetAnnotations()["kcp.io/path"]
	}
	w.copier = copier{workload: w, customizers: map[types.NamespacedName]*edgev2alpha1.Customizer{}}
	return w, w.readPlacements(ctx)
}

var logicalClusters = schema.GroupVersionResource{Group: "core.kcp.io", Version: "v1alpha1", Resource: "logicalclusters"}

// readPlacements reads the EdgePlacements and their destinations.
func (w *workload) readPlacements(ctx context.Context) error {
	var placements edgev2alpha1.EdgePlacementList
	if err := w.here.Client.List(ctx, &placements); err != nil {
		return fmt.Errorf("cannot list the EdgePlacements of the workspace: %w", err)
	}
	var placed edgev2alpha1.SinglePlacementSliceList
	if err := w.here.Client.List(ctx, &placed); err != nil {
		return fmt.Errorf("cannot list the SinglePlacementSlices of the workspace: %w", err)
	}
	for i := range placements.Items {
		placement := &placements.Items[i]
		compiled, err := rules.Compile(placement)
		if err != nil || placement.DeletionTimestamp != nil {
			continue
		}
		one := &selecting{Placement: compiled}
		for j := range placed.Items {
			if placed.Items[j].Name == placement.Name {
				one.destinations = placed.Items[j].Destinations
			}
		}
		w.placements = append(w.placements, one)
	}
	isNamed := func(one *selecting) bool { return one.Name == w.placement }
	if w.placement != "" && !slices.ContainsFunc(w.placements, isNamed) {
		return fmt.Errorf("the workspace has no EdgePlacement %q", w.placement)
	}
	return nil
}

// isInScope reports whether the user asks about a destination.
func (w *workload) isInScope(at destinationKey) bool {
	if !w.isAsked(at.name) {
		return false
	}
	return w.placement == "" || slices.ContainsFunc(w.placements, func(one *selecting) bool {
		return one.Name == w.placement && slices.ContainsFunc(one.destinations, func(of edgev2alpha1.SinglePlacement) bool { return keyOf(of) == at })
	})
}

func keyOf(of edgev2alpha1.SinglePlacement) destinationKey {
	return destinationKey{of.Cluster, of.SyncTargetName}
}

// wanted is a destination that gets an object, with the EdgePlacements that place it there.
type wanted struct {
	destination edgev2alpha1.SinglePlacement
	by          []*selecting
}

// policy returns what happens to the copy when the object leaves the destination.
func (w *wanted) policy() ownership.Policy {
	if slices.ContainsFunc(w.by, func(one *selecting) bool { return one.DeletionPolicy == ownership.PolicyOrphan }) {
		return ownership.PolicyOrphan
	}
	return ownership.PolicyDelete
}

// wantedBy returns the destinations of an object by some EdgePlacements. namespace is its Namespace, or nil if that is unknown.
func wantedBy(placements []*selecting, of *change, object, namespace *unstructured.Unstructured) map[destinationKey]*wanted {
	found := map[destinationKey]*wanted{}
	if object == nil || object.GetDeletionTimestamp() != nil {
		return found
	}
	facts := rules.ObjectOf(of.served.GroupResource(), object, func() (labels.Labels, bool) {
		if namespace == nil {
			return labels.Set{}, false
		}
		return labels.Set(namespace.GetLabels()), true
	})
	for _, one := range placements {
		if selected, _ := one.Selects(facts); !selected {
			continue
		}
		for _, destination := range one.destinations {
			at := keyOf(destination)
			if found[at] == nil {
				found[at] = &wanted{destination: destination}
			}
			found[at].by = append(found[at].by, one)
		}
	}
	return found
}

// placedChange is a change of an object, with its destinations before and after it.
type placedChange struct {
	*change
	before, after map[destinationKey]*wanted
}

// ofManifests finds the items of manifests that are applied to the workspace.
func (w *workload) ofManifests(ctx context.Context, objects []*unstructured.Unstructured) (*scope, error) {
	found, err := w.changesIn(ctx, w.here, objects)
	if err != nil {
		return nil, err
	}
	all := &scope{problems: found.problems}
	var changes []*placedChange
	for _, one := range found.changes {
		if one.after.GetKind() == "Customizer" && one.served.Group == edgev2alpha1.SchemeGroupVersion.Group {
			if err := w.copier.override(one.key, one.after); err != nil {
				return nil, err
			}
			all.notes = append(all.notes, Remark{Object: one.object(), Message: "objects outside the files that name the Customizer are not asked about"})
			continue
		}
		if !rules.IsPlaceable(*newResource(one), one.after) {
			all.notes = append(all.notes, Remark{Object: one.object(), Message: "such objects are never placed"})
			continue
		}
		namespace := w.namespaceOf(ctx, one.key.Namespace)
		after := cmp.Or(found.namespaces[one.key.Namespace], namespace)
		changes = append(changes, &placedChange{one, wantedBy(w.placements, one, one.before, namespace), wantedBy(w.placements, one, one.after, after)})
	}
	addContainers(changes)
	for _, one := range changes {
		if len(one.before)+len(one.after) == 0 && one.change.after.GroupVersionKind() != namespaceKind {
			all.notes = append(all.notes, Remark{Object: one.object(), Message: "no EdgePlacement places it anywhere"})
		}
	}
	if err := w.addItems(ctx, all, changes, found.namespaces); err != nil {
		return nil, err
	}
	known := syncTargetNames{}
	known.addWorkspace(w, nil)
	return all, w.checkSyncTargets(ctx, all, known)
}

// addContainers adds the destinations of the objects in a Namespace to the Namespace itself, where each workspace has namespaces of its own.
func addContainers(changes []*placedChange) {
	for _, container := range changes {
		if container.change.after.GroupVersionKind() != namespaceKind {
			continue
		}
		for _, one := range changes {
			if one.key.Namespace != container.key.Name {
				continue
			}
			for at, of := range one.after {
				if of.destination.NamespaceTemplate != "" && container.after[at] == nil {
					container.after[at] = of
				}
			}
		}
	}
}

// namespaceOf returns a Namespace of the workspace; nil if it cannot be read.
func (w *workload) namespaceOf(ctx context.Context, name string) *unstructured.Unstructured {
	if name == "" {
		return nil
	}
	if _, ok := w.namespaces[name]; !ok {
		found, err := w.here.Get(ctx, cli.NamespacesResource, types.NamespacedName{Name: name})
		if err != nil {
			found = nil
		}
		w.namespaces[name] = found
	}
	return w.namespaces[name]
}

// addItems adds the items of changes at all destinations that the user asks about.
func (w *workload) addItems(ctx context.Context, to *scope, changes []*placedChange, namespaces map[string]*unstructured.Unstructured) error {
	destinations := map[destinationKey]edgev2alpha1.SinglePlacement{}
	for _, one := range changes {
		for _, all := range []map[destinationKey]*wanted{one.before, one.after} {
			for at, of := range all {
				if w.isInScope(at) {
					destinations[at] = of.destination
				}
			}
		}
	}
	if err := w.open(ctx, destinations); err != nil {
		return err
	}
	for _, one := range changes {
		for at, destination := range destinations {
			if one.before[at] == nil && one.after[at] == nil {
				continue
			}
			made, err := w.item(ctx, one, at, destination, cmp.Or(namespaces[one.key.Namespace], w.namespaceOf(ctx, one.key.Namespace)))
			if err != nil {
				return err
			}
			to.items = append(to.items, made)
		}
	}
	to.clusters = append(to.clusters, slices.Collect(maps.Values(w.clusters))...)
	return nil
}

// open opens the clusters of destinations.
func (w *workload) open(ctx context.Context, destinations map[destinationKey]edgev2alpha1.SinglePlacement) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(w.concurrency)
	for at, destination := range destinations {
		opened := &cluster{inventory: logicalcluster.Name(at.inventory)}
		w.clusters[at] = opened
		from := w.inventories.of(opened.inventory)
		group.Go(func() error {
			var err error
			if opened.syncTarget, err = from.syncTarget(ctx, at.name); err != nil {
				opened.syncTarget = &edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{Name: at.name, UID: destination.SyncTargetUID}}
				if w.target.Kubeconfig == "" {
					opened.err = err
					return ctx.Err()
				}
			}
			opened.reader, opened.err = w.target.reader(ctx, from.client, opened.syncTarget, len(destinations) == 1)
			return ctx.Err()
		})
	}
	return group.Wait()
}

// item returns the item of a change at a destination.
func (w *workload) item(ctx context.Context, of *placedChange, at destinationKey, destination edgev2alpha1.SinglePlacement, namespace *unstructured.Unstructured) (*item, error) {
	opened := w.clusters[at]
	made := &item{cluster: opened, fromMark: true, namespace: namespace}
	set := w.ruleSet(of.change, at, opened.syncTarget)
	made.before.rules, made.after.rules = set, set
	source := copySource{workspace: w.self, destination: destination, cluster: opened, resource: set.predictor.Resource()}
	made.key = source.nameOf(of.key)
	var err error
	if before := of.before[at]; before != nil {
		made.before.object, err = w.copier.copy(ctx, source, of.change.before, before.policy(), false)
		made.staysWithoutSource = before.policy() == ownership.PolicyOrphan
		if err != nil && !isRefusal(err) {
			return nil, err
		}
	}
	if after := of.after[at]; after != nil {
		if made.after.object, err = w.copier.copy(ctx, source, of.change.after, after.policy(), true); isRefusal(err) {
			made.err, err = err, nil
		}
		return made, err
	}
	return made, nil
}

// ruleSet returns the rules for the copies of an object in the mailbox of a SyncTarget, which the hub's own config selects there.
func (w *workload) ruleSet(of *change, at destinationKey, syncTarget *edgev2alpha1.SyncTarget) *ruleSet {
	key := ruleSetKey{at, of.served.GroupResource()}
	if found, ok := w.ruleSets[key]; ok {
		return found
	}
	served := *of.served
	served.GroupVersionResource = w.inMailbox(of.served.GroupVersionResource)
	owner := ownership.Owner{Hub: w.hub, SyncTarget: syncTarget.UID}.ForPlacements()
	selected := rules.SelectedResource{GroupResource: edgev2alpha1.GroupResource{Group: served.Group, Resource: served.Resource}, Namespaced: served.Namespaced}
	config := &edgev2alpha1.SyncerConfig{Spec: rules.CopiesSpec([]rules.SelectedResource{selected}, owner)}
	config.Name = "placements"
	facts := explain.Facts{Now: time.Now(), SyncTarget: syncTarget, Hub: w.hub, ProtectedNamespaces: w.protected, Resource: served.GroupResource()}
	facts.Served.Value = &served
	facts.Published.Value, facts.Published.Err = w.published, w.publishedErr
	facts.Configs.Value.SyncerConfigs = []*edgev2alpha1.SyncerConfig{config}
	w.ruleSets[key] = newRuleSet(facts)
	return w.ruleSets[key]
}

// inMailbox returns the resource of the copies in mailboxes: the twin, if one is published.
func (w *workload) inMailbox(resource schema.GroupVersionResource) schema.GroupVersionResource {
	twin := twinOf(resource)
	if twin.Resource == "" || publishedresource.FindOldest(w.published, publishedresource.InMailbox, twin.GroupResource(), "") == nil {
		return resource
	}
	return twin
}

// settingsOf returns how workspaces share the cluster of a destination.
func settingsOf(destination edgev2alpha1.SinglePlacement, syncTarget *edgev2alpha1.SyncTarget) tenancy.Settings {
	if syncTarget.Spec.Tenancy != nil {
		return tenancy.SettingsOf(syncTarget.Spec.Tenancy)
	}
	return tenancy.Settings{Naming: tenancy.Naming(destination.NamespaceTemplate)}
}

// errRefused wraps the reason why an object cannot be placed at a destination.
var errRefused = errors.New("it cannot be placed there")

func isRefusal(err error) bool { return errors.Is(err, errRefused) }
