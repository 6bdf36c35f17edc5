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
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/explain"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
)

// mailbox is the mailbox of a SyncTarget, as far as the user may read it.
type mailbox struct {
	cluster *cluster
	reader  *cli.Reader
	// facts have the rules, and no object.
	facts explain.Facts
}

// mailboxes are the mailboxes that a change concerns.
type mailboxes struct {
	*options
	all []*mailbox
}

// mailboxes opens the mailboxes of the SyncTargets that the user asks about: of the current inventory workspace, or the current mailbox.
func (o *options) mailboxes(ctx context.Context, here *cli.Reader) (*mailboxes, error) {
	inventory, syncTargets, err := o.syncTargetsOf(ctx, here)
	if err != nil {
		return nil, err
	}
	boxes := &mailboxes{options: o}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(o.concurrency)
	for i := range syncTargets {
		box := &mailbox{cluster: &cluster{inventory: logicalcluster.From(&syncTargets[i]), syncTarget: &syncTargets[i]}}
		boxes.all = append(boxes.all, box)
		group.Go(func() error {
			box.cluster.reader, box.cluster.err = o.target.reader(ctx, inventory.Client, box.cluster.syncTarget, len(syncTargets) == 1)
			if err := box.open(ctx, o); err != nil {
				box.cluster.err = errors.Join(fmt.Errorf("its mailbox cannot be read: %w", err), box.cluster.err)
			}
			return ctx.Err()
		})
	}
	return boxes, group.Wait()
}

// syncTargetsOf returns the SyncTargets that the user asks about, with a reader of their inventory workspace.
func (o *options) syncTargetsOf(ctx context.Context, here *cli.Reader) (*cli.Reader, []edgev2alpha1.SyncTarget, error) {
	if here.Serves("synctargets") {
		list, err := o.List(ctx, here.Client, o.syncTargets)
		if err != nil {
			return nil, nil, err
		}
		return here, list.Items, nil
	}
	if !here.Serves("syncerconfigs") {
		return nil, nil, errors.New("the current workspace is no workload workspace, no inventory workspace and no mailbox")
	}
	if len(o.syncTargets) > 0 {
		return nil, nil, errors.New("--sync-targets is not for a mailbox, which has one SyncTarget")
	}
	logical, err := here.Get(ctx, logicalClusters, types.NamespacedName{Name: "cluster"})
	if err != nil || logical == nil {
		return nil, nil, fmt.Errorf("cannot find the SyncTarget of the current mailbox: %w", err)
	}
	path := logical.GetAnnotations()["kcp.io/path"]
	cluster, uid, found := strings.Cut(path[strings.LastIndex(path, ":")+1:], "-mb-")
	if !found {
		return nil, nil, fmt.Errorf("cannot find the SyncTarget of the mailbox %s: choose the inventory workspace, and give --sync-targets", path)
	}
	inventory, err := o.ReaderIn(cluster)
	if err != nil {
		return nil, nil, err
	}
	list, err := o.List(ctx, inventory.Client, nil)
	if err != nil {
		return nil, nil, err
	}
	list.Items = slices.DeleteFunc(list.Items, func(one edgev2alpha1.SyncTarget) bool { return string(one.UID) != uid })
	return inventory, list.Items, nil
}

// open reads the rules of the mailbox.
func (m *mailbox) open(ctx context.Context, o *options) error {
	status := m.cluster.syncTarget.Status.Mailbox
	if status == nil || status.Cluster == "" {
		return errors.New("there is none yet")
	}
	reader, err := o.ReaderIn(status.Cluster)
	if err != nil {
		return err
	}
	if _, err := reader.APIs.ServerGroups(); err != nil {
		return err
	}
	m.reader = reader
	m.facts = explain.Facts{Now: time.Now(), SyncTarget: m.cluster.syncTarget}
	rules, err := cli.ReadRules(ctx, reader)
	if err != nil {
		return err
	}
	m.facts.Hub, m.facts.ProtectedNamespaces = rules.Hub, rules.ProtectedNamespaces
	m.facts.Published.Value, m.facts.Published.Err = cli.PublishedByRules(rules, nil)
	m.facts.Configs = explain.ReadConfigs(ctx, reader)
	return m.facts.Configs.Err
}

// rulesFor returns the rules for the objects of a resource.
func (m *mailbox) rulesFor(served *publishedresource.API) *ruleSet {
	facts := m.facts
	facts.Resource, facts.Served.Value = served.GroupResource(), served
	return newRuleSet(facts)
}

// namespaceOf returns a Namespace of the mailbox; nil if there is none, or if it cannot be read.
func (m *mailbox) namespaceOf(ctx context.Context, name string) *unstructured.Unstructured {
	if name == "" {
		return nil
	}
	namespace, _ := m.reader.Get(ctx, cli.NamespacesResource, types.NamespacedName{Name: name})
	return namespace
}

// item returns the item of a change of the mailbox.
func (m *mailbox) item(of *change, set *ruleSet, namespace *unstructured.Unstructured) *item {
	return &item{cluster: m.cluster, key: of.key, namespace: namespace, before: side{of.before, set}, after: side{of.after, set}}
}

// clusters returns the clusters of the mailboxes.
func (b *mailboxes) clusters() (all []*cluster) {
	for _, box := range b.all {
		all = append(all, box.cluster)
	}
	return all
}

// ofManifests finds the items of manifests that are applied to each of the mailboxes.
func (b *mailboxes) ofManifests(ctx context.Context, objects []*unstructured.Unstructured) (*scope, error) {
	all := &scope{clusters: b.clusters()}
	for _, box := range b.all {
		if box.cluster.err != nil {
			continue
		}
		found, err := b.changesIn(ctx, box.reader, objects)
		if err != nil {
			return nil, err
		}
		for _, problem := range found.problems {
			problem.SyncTargets = []string{box.cluster.name()}
			all.problems = append(all.problems, problem)
		}
		sets := map[string]*ruleSet{}
		for _, one := range found.changes {
			name := one.served.GroupResource().String()
			if sets[name] == nil {
				sets[name] = box.rulesFor(one.served)
			}
			namespace := found.namespaces[one.key.Namespace]
			if namespace == nil {
				namespace = box.namespaceOf(ctx, one.key.Namespace)
			}
			all.items = append(all.items, box.item(one, sets[name], namespace))
		}
	}
	return all, nil
}
