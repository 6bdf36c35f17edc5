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

package scenario

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
	"github.com/synchub-dev/synchub/test/bench/baseline"
	"github.com/synchub-dev/synchub/test/bench/report"
)

// restarts restarts the hub with more and more objects in sync, one in ten of them a Deployment.
func restarts(ctx context.Context, w *Env) (rows []report.Row, err error) {
	same, err := w.lists(ctx)
	if err != nil {
		return nil, err
	}
	for step, objects := range w.Restarts {
		if err := w.addObjects(ctx, fmt.Sprintf("hub-restart-%d", step), objects-w.synced); err != nil {
			return rows, err
		}
		what := fmt.Sprintf("%d objects in sync: ", w.synced)
		reads := report.Row{What: what + "reads of mailboxes and targets other than lists, watches, discovery, health and identity", Limit: new(0.0)}
		own := report.Row{What: what + "likewise, of what is the hub's own: its identity, its key and the Secrets of SyncTargets"}
		writes := report.Row{What: what + "writes", Limit: new(0.0)}
		known := report.Row{What: what + "from the start until all are known to be in sync, against the same lists", Unit: "s", Limit: new(1.5)}
		for range w.Rounds {
			started := time.Now()
			if err := w.startBaseline(ctx, same...); err != nil {
				return rows, err
			}
			known.Direct = append(known.Direct, time.Since(started).Seconds())
			elapsed, err := w.restart(ctx)
			if err != nil {
				return rows, err
			}
			known.Hub = append(known.Hub, elapsed.Seconds())
			requests, err := w.Hub.Requests(ctx)
			if err != nil {
				return rows, err
			}
			read, written := readsAndWrites(requests)
			ofItself, ofOthers := split(read)
			own.Hub, reads.Hub, writes.Hub = append(own.Hub, ofItself), append(reads.Hub, ofOthers), append(writes.Hub, sum(written))
			w.progress("the hub took %.2f s, lists %.2f s; it read %v and wrote %v", elapsed.Seconds(), known.Direct[len(known.Direct)-1], read, written)
		}
		rows = append(rows, writes, reads, own, known)
	}
	return rows, w.startBaseline(ctx)
}

// split returns the number of requests to the hub's own workspaces, and to mailboxes and targets.
func split(requests map[string]float64) (own, others float64) {
	for kind, count := range requests {
		if strings.HasPrefix(kind, "control ") {
			own += count
		} else {
			others += count
		}
	}
	return own, others
}

// lists returns the resources that the hub lists in all mailboxes and inventory workspaces, except those that a baseline
// syncer lists anyway.
func (w *Env) lists(ctx context.Context) ([]baseline.Lists, error) {
	requests, err := w.Hub.Requests(ctx)
	if err != nil {
		return nil, err
	}
	watched := map[string]bool{}
	for kind := range requests {
		if kind.Destination == "mailbox" && kind.Verb == "watch" {
			watched[kind.Resource] = true
		}
	}
	mailboxes := baseline.Lists{}
	if mailboxes.Endpoint, err = w.endpoint(ctx, synchubv1alpha1.MailboxExport); err != nil {
		return nil, err
	}
	if mailboxes.Resources, err = w.servedResources(mailboxes.Endpoint, watched); err != nil {
		return nil, err
	}
	inventories := baseline.Lists{Resources: []schema.GroupVersionResource{syncTargets, secrets}}
	inventories.Endpoint, err = w.endpoint(ctx, synchubv1alpha1.InventoryExport)
	return []baseline.Lists{mailboxes, inventories}, err
}

// servedResources returns the resources with these names that a virtual workspace serves, except those that a baseline syncer lists
// anyway. The hub watches the twin of a kind, not the kind that is in force in the mailbox itself.
func (w *Env) servedResources(endpoint string, names map[string]bool) ([]schema.GroupVersionResource, error) {
	config := w.Installation.InWorkspace(w.Installation.Workspace)
	config.Host = endpoint + "/clusters/*"
	known, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	served, err := known.ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	resources := map[string]schema.GroupVersionResource{}
	for _, group := range served {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, one := range group.APIResources {
			if _, found := resources[one.Name]; names[one.Name] && (!found || version.Group == policy.TwinGroup) {
				resources[one.Name] = version.WithResource(one.Name)
			}
		}
	}
	delete(resources, configMaps.Resource)
	delete(resources, deployments.Resource)
	return slices.Collect(maps.Values(resources)), nil
}

// addObjects adds objects on the whole clusters and waits until they are in sync.
func (w *Env) addObjects(ctx context.Context, namespace string, objects int) error {
	each := objects / len(w.clusters)
	err := w.each(ctx, w.clusters, func(ctx context.Context, at *testTarget) error {
		if err := at.prepare(ctx, namespace); err != nil {
			return err
		}
		if err := at.configure(ctx, config(namespace, false, configMaps, deployments)); err != nil {
			return err
		}
		for i := range each {
			resource := configMaps
			if i%10 == 0 {
				resource = deployments
			}
			if err := at.fill(ctx, resource, newObject(resource, namespace, fmt.Sprintf("object-%d", i))); err != nil {
				return err
			}
		}
		return nil
	})
	w.synced += each * len(w.clusters)
	if err != nil {
		return err
	}
	return w.waitIdle(ctx)
}

// restart restarts the idle hub, and returns how long the hub took until it had reconciled all objects.
func (w *Env) restart(ctx context.Context) (time.Duration, error) {
	if err := w.StopHub(ctx); err != nil {
		return 0, err
	}
	started := time.Now()
	if err := w.StartHub(ctx); err != nil {
		return 0, err
	}
	elapsed, err := w.await(ctx, started, w.foundInSync, float64(w.synced), 0)
	if err != nil {
		return 0, err
	}
	return elapsed, w.waitIdle(ctx)
}
