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
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/synchub-dev/synchub/test/bench/baseline"
	"github.com/synchub-dev/synchub/test/bench/report"
)

// track is one object that is changed on one side and watched on the other.
type track struct {
	from     dynamic.ResourceInterface
	name     string
	arrivals *watcher
}

// change is how to write a number into an object, and where to read it.
type change struct {
	resource    schema.GroupVersionResource
	patch       func(number int) string
	subresource []string
	shows       func(*unstructured.Unstructured) string
}

// edit is a change of a ConfigMap in a mailbox.
var edit = change{
	resource: configMaps,
	patch:    func(number int) string { return fmt.Sprintf(`{"data": {"entry": "%d"}}`, number) },
	shows: func(object *unstructured.Unstructured) string {
		entry, _, _ := unstructured.NestedString(object.Object, "data", "entry")
		return entry
	},
}

func mailboxToTarget(at *testTarget) (from, to dynamic.Interface) { return at.mailbox, at.target }

func edits(ctx context.Context, w *Env) ([]report.Row, error) {
	return w.singles(ctx, "edit", w.fleet[:min(10, len(w.fleet))], edit, mailboxToTarget)
}

// statuses changes the status of Deployments on targets.
func statuses(ctx context.Context, w *Env) ([]report.Row, error) {
	change := change{
		resource: deployments,
		patch: func(number int) string {
			return fmt.Sprintf(`{"status": {"observedGeneration": 1, "replicas": %d}}`, number)
		},
		subresource: []string{"status"},
		shows: func(object *unstructured.Unstructured) string {
			replicas, _, _ := unstructured.NestedFieldNoCopy(object.Object, "status", "replicas")
			return fmt.Sprint(replicas)
		},
	}
	return w.singles(ctx, "status", w.clusters, change, func(at *testTarget) (from, to dynamic.Interface) { return at.target, at.mailbox })
}

// singles makes one change after the other, for the hub and for the baseline in alternation. It measures from the response
// on one side to the event on the other.
func (w *Env) singles(ctx context.Context, name string, targets []*testTarget, change change, sides func(*testTarget) (from, to dynamic.Interface)) ([]report.Row, error) {
	tracks, err := w.tracksOfBoth(ctx, name, targets, change.resource, sides)
	defer stopAll(tracks)
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("%d targets connected, from the answer on one side to the event on the other: ", len(w.all()))
	half := report.Row{What: what + "p50", Unit: "ms", Limit: new(2.0)}
	most := report.Row{What: what + "p99", Unit: "ms", Limit: new(3.0)}
	number := 0
	for range w.Rounds {
		latencies := map[string][]float64{}
		for i := range w.Edits {
			for _, syncer := range []string{"hub", "bare"} {
				number++
				one := tracks[syncer][i%len(targets)]
				latency, err := one.measure(ctx, change, number)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", syncer, err)
				}
				latencies[syncer] = append(latencies[syncer], latency.Seconds()*1000)
			}
		}
		half.Hub, half.Direct = append(half.Hub, report.Percentile(latencies["hub"], 50)), append(half.Direct, report.Percentile(latencies["bare"], 50))
		most.Hub, most.Direct = append(most.Hub, report.Percentile(latencies["hub"], 99)), append(most.Direct, report.Percentile(latencies["bare"], 99))
	}
	return []report.Row{half, most}, nil
}

// tracksOfBoth returns tracks for the hub and for the baseline. They must be stopped even after an error.
func (w *Env) tracksOfBoth(ctx context.Context, name string, targets []*testTarget, resource schema.GroupVersionResource, sides func(*testTarget) (from, to dynamic.Interface)) (map[string][]*track, error) {
	tracks := map[string][]*track{}
	for _, syncer := range []string{"hub", "bare"} {
		made, err := w.tracks(ctx, syncer+"-"+name, targets, resource, sides)
		if err != nil {
			return tracks, err
		}
		tracks[syncer] = made
	}
	if _, err := w.baseline.Send(baseline.Request{Operation: baseline.Follow, Namespace: "bare-" + name}); err != nil {
		return tracks, err
	}
	return tracks, w.waitIdle(ctx)
}

// tracks creates an object in each mailbox, waits until it is in sync, and watches it on the other side.
func (w *Env) tracks(ctx context.Context, namespace string, targets []*testTarget, resource schema.GroupVersionResource, sides func(*testTarget) (from, to dynamic.Interface)) ([]*track, error) {
	err := w.each(ctx, targets, func(ctx context.Context, at *testTarget) error {
		if err := at.prepare(ctx, namespace); err != nil {
			return err
		}
		if err := at.fill(ctx, resource, newObject(resource, namespace, "single")); err != nil {
			return err
		}
		if isHubNamespace(namespace) {
			return at.configure(ctx, config(namespace, false, resource))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if isHubNamespace(namespace) {
		w.synced += len(targets)
	} else if err := w.applyAll(ctx, resource, namespace, len(targets)); err != nil {
		return nil, err
	}
	tracks := make([]*track, len(targets))
	for i, at := range targets {
		from, to := sides(at)
		if err := exists(ctx, at.target.Resource(resource).Namespace(namespace), "single"); err != nil {
			return nil, err
		}
		arrivals, err := newWatcher(ctx, to, resource, namespace)
		if err != nil {
			return nil, err
		}
		tracks[i] = &track{from: from.Resource(resource).Namespace(namespace), name: "single", arrivals: arrivals}
	}
	return tracks, nil
}

func stopAll(tracks map[string][]*track) {
	for _, all := range tracks {
		for _, one := range all {
			one.arrivals.stream.Stop()
		}
	}
}

// applyAll lets the baseline apply all objects of a namespace once its cache has them.
func (w *Env) applyAll(ctx context.Context, resource schema.GroupVersionResource, namespace string, objects int) error {
	return poll(ctx, 100*time.Millisecond, func() (bool, error) {
		answer, err := w.baseline.Send(baseline.Request{Operation: baseline.Burst, Resource: resource, Namespace: namespace, Workers: inFlight})
		return answer.Objects == objects, err
	})
}

// exists returns when the object exists.
func exists(ctx context.Context, client dynamic.ResourceInterface, name string) error {
	return poll(ctx, 50*time.Millisecond, func() (bool, error) {
		_, err := client.Get(ctx, name, metav1.GetOptions{})
		return err == nil, ignoreNotFound(err)
	})
}

// measure makes a change and returns its latency, which is negative if the event overtook the response.
func (t *track) measure(ctx context.Context, change change, number int) (time.Duration, error) {
	_, err := t.from.Patch(ctx, t.name, types.MergePatchType, []byte(change.patch(number)), metav1.PatchOptions{}, change.subresource...)
	answered := time.Now()
	if err != nil {
		return 0, err
	}
	arrived, err := t.arrivals.until(ctx, func(object *unstructured.Unstructured) bool { return change.shows(object) == fmt.Sprint(number) })
	return arrived.Sub(answered), err
}
