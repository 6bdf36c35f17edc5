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

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/hack/demo/timeline"
)

var deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}

// watch watches the Deployments of all mailboxes and clusters until ctx ends.
func (d *demo) watch(ctx context.Context) error {
	watchers := d.watchBothSides(ctx)
	return d.take(ctx, step{"wait until mailboxes and clusters can be watched", stepLimit, func(ctx context.Context) error {
		return awaitOpen(ctx, watchers)
	}})
}

// follow lets both teams apply the same manifest, and shows each Deployment until its last status is back.
func (d *demo) follow(ctx context.Context) error {
	d.screen.Println("\nBoth apply the same manifest, with the same names, in their own workspaces. The table shows when,\n" +
		"and then how long each leg of the way to each cluster and back took.\n")
	if err := d.apply(ctx, 1, d.teams...); err != nil {
		return err
	}
	d.redraw()
	err := d.awaitTimelines(ctx)
	d.screen.Draw("")
	d.screen.Println("\n" + timeline.Table(d.log.Timelines()) + "\n")
	if err != nil {
		return err
	}
	// The workspace has the status a moment after the mailbox.
	if err := d.awaitHome(ctx, d.teams[0]); err != nil {
		return err
	}
	d.screen.Println("Each has namespaces of its own on the clusters, and its status at home:\n")
	if err := d.show(ctx, in(d.clusters[0].name, "get", "deployments", "--all-namespaces")); err != nil {
		return err
	}
	return d.show(ctx, in(d.teams[0].name, "get", "deployments", "--namespace", namespace))
}

// awaitHome waits until the workspace of a team shows that all clusters run its Deployment.
func (d *demo) awaitHome(ctx context.Context, team *team) error {
	ctx, cancel := limited(ctx, stepLimit)
	defer cancel()
	if err := d.await(ctx, d.runsOn(team, len(d.clusters))); err != nil {
		return because(ctx, err)
	}
	return nil
}

func (d *demo) awaitTimelines(ctx context.Context) error {
	ctx, cancel := limited(ctx, followLimit)
	defer cancel()
	select {
	case <-d.log.Done():
		return nil
	case <-ctx.Done():
		return because(ctx, errors.New(strings.Join(d.log.Missing(), "; ")))
	}
}

// watchBothSides starts watches for the Deployments of all clusters and mailboxes.
func (d *demo) watchBothSides(ctx context.Context) []*watcher {
	var watchers []*watcher
	for _, cluster := range d.clusters {
		watchers = append(watchers,
			newWatcher(cluster.name, cluster.config, func(event watch.EventType, deployment *unstructured.Unstructured, at time.Time) {
				team := d.teamOf(deployment)
				if team == nil {
					return
				}
				d.fleet.set(team.name, cluster.name, event, deployment)
				route := timeline.Route{Team: team.name, Cluster: cluster.name}
				d.record(route, timeline.Applied, at)
				if isAvailable(deployment) {
					d.record(route, timeline.Available, at)
				}
			}),
			newWatcher("the mailbox of "+cluster.name, cluster.mailbox, func(_ watch.EventType, deployment *unstructured.Unstructured, at time.Time) {
				if team := d.teamOf(deployment); team != nil && isAvailable(deployment) {
					d.record(timeline.Route{Team: team.name, Cluster: cluster.name}, timeline.Returned, at)
				}
			}),
		)
	}
	for _, watcher := range watchers {
		go watcher.run(ctx)
	}
	return watchers
}

// teamOf returns the team whose Deployment this is, in a mailbox or on a cluster, or nil.
func (d *demo) teamOf(deployment *unstructured.Unstructured) *team {
	for _, team := range d.teams {
		if deployment.GetNamespace() == team.namespaceOnClusters() {
			return team
		}
	}
	return nil
}

// record shows the stages that a Deployment has newly reached.
func (d *demo) record(route timeline.Route, stage timeline.Stage, at time.Time) {
	j, reached := d.log.Record(route, stage, at)
	if len(reached) == 0 {
		return
	}
	if d.screen.Live() {
		d.redraw()
		return
	}
	for _, stage := range reached {
		d.screen.Println(timeline.Line(j, stage))
	}
}

func (d *demo) redraw() { d.screen.Draw(timeline.Table(d.log.Timelines())) }

// watcher watches the Deployments of one cluster or mailbox.
type watcher struct {
	side   string
	config *rest.Config
	// seen is called for each event of a Deployment, with its time.
	seen func(event watch.EventType, deployment *unstructured.Unstructured, at time.Time)
	// open is called when a watch has started.
	open func()
	done <-chan struct{}

	mu   sync.Mutex
	last error
}

func newWatcher(side string, config *rest.Config, seen func(watch.EventType, *unstructured.Unstructured, time.Time)) *watcher {
	done := make(chan struct{})
	return &watcher{side: side, config: config, seen: seen, open: sync.OnceFunc(func() { close(done) }), done: done}
}

// run watches until ctx ends. Every watch starts with the existing objects, so a restart misses none.
func (w *watcher) run(ctx context.Context) {
	_ = wait.PollUntilContextCancel(ctx, pollEvery, true, func(ctx context.Context) (bool, error) {
		err := w.watchOnce(ctx)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.last = err
		return false, nil
	})
}

func (w *watcher) watchOnce(ctx context.Context) error {
	client, err := dynamic.NewForConfig(w.config)
	if err != nil {
		return err
	}
	events, err := client.Resource(deployments).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer events.Stop()
	w.open()
	for event := range events.ResultChan() {
		at := time.Now()
		if deployment, ok := event.Object.(*unstructured.Unstructured); ok && event.Type != watch.Error && event.Type != watch.Bookmark {
			w.seen(event.Type, deployment, at)
		}
	}
	return errors.New("the watch ended")
}

// awaitOpen waits until all watches have started.
func awaitOpen(ctx context.Context, watchers []*watcher) error {
	for _, w := range watchers {
		select {
		case <-w.done:
		case <-ctx.Done():
			w.mu.Lock()
			defer w.mu.Unlock()
			return fmt.Errorf("watch the Deployments of %s: %w", w.side, errors.Join(ctx.Err(), w.last))
		}
	}
	return nil
}

// isAvailable reports whether a Deployment has the condition Available with status True.
func isAvailable(deployment *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(deployment.Object, "status", "conditions")
	for _, condition := range conditions {
		fields, ok := condition.(map[string]any)
		if ok && fields["type"] == "Available" && fields["status"] == "True" {
			return true
		}
	}
	return false
}
