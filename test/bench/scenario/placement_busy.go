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

	"github.com/kcp-dev/logicalcluster/v3"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/test/bench/report"
)

// placementBusy edits an object of a workload workspace while the hub places many objects of another workspace on the whole
// fleet. A plain client that relays edits of an object to the same mailbox takes turns with the hub: kcp is busy for both. So the
// comparison measures only the delay by the hub itself.
func placementBusy(ctx context.Context, w *placementEnv) ([]report.Row, error) {
	quiet, err := w.placedTrack(ctx, "hub-placement-quiet", 1)
	if err != nil {
		return nil, err
	}
	defer quiet.arrivals.stream.Stop()
	plain, err := w.newRelay(ctx, "bare-placement-quiet")
	if err != nil {
		return nil, err
	}
	defer plain.stop()
	crowd, err := w.newWorkload(ctx, "hub-placement-crowd")
	if err != nil {
		return nil, err
	}
	edited, objects := &editPair{hub: quiet, baseline: plain}, max(1, w.env.Busy/4/len(w.env.fleet))
	what := fmt.Sprintf("an edit in a workload workspace, until the mailbox has it, while %d objects of another workspace are placed on %d clusters: ", objects, len(w.env.fleet))
	half, most := report.Row{What: what + "p50", Unit: "ms", Limit: new(1.3)}, report.Row{What: what + "p99", Unit: "ms"}
	for round := range w.env.Rounds {
		during, err := w.editsWhilePlacing(ctx, edited, crowd, fmt.Sprintf("hub-placement-crowd-%d", round), objects)
		if err != nil {
			return nil, err
		}
		half.Hub, half.Direct = append(half.Hub, report.Percentile(during.hub, 50)), append(half.Direct, report.Percentile(during.baseline, 50))
		most.Hub, most.Direct = append(most.Hub, p99(during.hub)), append(most.Direct, p99(during.baseline))
		w.env.progress("round %d: %d edits, p50 %.1f ms, of the plain client %.1f ms; p99 %.1f ms, of the plain client %.1f ms", round+1, len(during.hub),
			report.Percentile(during.hub, 50), report.Percentile(during.baseline, 50), p99(during.hub), p99(during.baseline))
	}
	return []report.Row{half, most}, nil
}

// editsWhilePlacing edits objects while the hub places other existing objects on the whole fleet.
func (w *placementEnv) editsWhilePlacing(ctx context.Context, edited *editPair, crowd *workload, namespace string, objects int) (taken latencies, err error) {
	if err := create(ctx, crowd.client, namespaces, parse("{apiVersion: v1, kind: Namespace, metadata: {name: "+namespace+"}}")); err != nil {
		return taken, err
	}
	if err := create(ctx, crowd.client, configMaps, configMapsOf(namespace, objects)...); err != nil {
		return taken, err
	}
	before, err := w.placed(ctx)
	if err != nil {
		return taken, err
	}
	if err := w.placementsIdle(ctx); err != nil {
		return taken, err
	}
	pairs, placed := objects*len(w.env.fleet), make(chan struct{})
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(placed)
		everything := placementOfAll(namespace, everywhere)
		everything.SetName(namespace)
		if err := create(groupCtx, crowd.client, edgePlacements, everything); err != nil {
			return err
		}
		_, err := w.env.await(groupCtx, time.Now(), w.placed, before+float64(pairs), time.Second)
		return err
	})
	group.Go(func() error {
		taken, err = edited.until(groupCtx, placed)
		return err
	})
	if err := group.Wait(); err != nil {
		return taken, err
	}
	w.env.synced += pairs
	return taken, w.placementsIdle(ctx)
}

// relay is a plain client that watches an object of a workload workspace, and writes what it sees into a mailbox, with the hub's
// kcp user and its virtual workspaces. source is the object, seen by the relay. copied is the other one; its arrivals are those
// that an administrator sees, as for objects of the hub.
type relay struct {
	user           dynamic.ResourceInterface
	source, copied *track
}

// newRelay returns a relay from a new workload workspace to the first mailbox.
func (w *placementEnv) newRelay(ctx context.Context, name string) (*relay, error) {
	from, err := w.newWorkload(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := w.env.fleet[0].prepare(ctx, name); err != nil {
		return nil, err
	}
	object := configMapsOf(name, 1)[0]
	made := &relay{user: from.client.Resource(configMaps).Namespace(name), source: &track{}, copied: &track{name: object.GetName()}}
	source, err := made.user.Create(ctx, object, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	if err := create(ctx, w.env.fleet[0].mailbox, configMaps, object); err != nil {
		return nil, err
	}
	asHub, err := w.asHub(ctx, synchubv1alpha1.WorkloadExport, logicalcluster.From(source).String())
	if err != nil {
		return nil, err
	}
	if made.source.arrivals, err = newWatcher(ctx, asHub, configMaps, name); err != nil {
		return nil, err
	}
	if asHub, err = w.asHub(ctx, synchubv1alpha1.MailboxExport, w.env.fleet[0].cluster); err == nil {
		made.copied.from = asHub.Resource(configMaps).Namespace(name)
		made.copied.arrivals, err = newWatcher(ctx, w.env.fleet[0].mailbox, configMaps, name)
	}
	if err != nil {
		made.source.arrivals.stream.Stop()
		return nil, err
	}
	return made, nil
}

// asHub returns a client of the hub's user for a workspace in the virtual workspace of an export.
func (w *placementEnv) asHub(ctx context.Context, export, cluster string) (dynamic.Interface, error) {
	endpoint, err := w.env.endpoint(ctx, export)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", w.env.Installation.HubKubeconfig)
	if err != nil {
		return nil, err
	}
	config.Host = endpoint + "/clusters/" + cluster
	return client(config)
}

func (r *relay) stop() {
	r.source.arrivals.stream.Stop()
	r.copied.arrivals.stream.Stop()
}

// measure makes a change in the workload workspace, relays it, and returns the time from the response to the event of the mailbox.
func (r *relay) measure(ctx context.Context, change change, number int) (time.Duration, error) {
	_, err := r.user.Patch(ctx, r.copied.name, types.MergePatchType, []byte(change.patch(number)), metav1.PatchOptions{})
	answered := time.Now()
	if err != nil {
		return 0, err
	}
	isNew := func(object *unstructured.Unstructured) bool { return change.shows(object) == fmt.Sprint(number) }
	if _, err := r.source.arrivals.until(ctx, isNew); err != nil {
		return 0, err
	}
	if _, err := r.copied.from.Patch(ctx, r.copied.name, types.MergePatchType, []byte(change.patch(number)), metav1.PatchOptions{}); err != nil {
		return 0, err
	}
	arrived, err := r.copied.arrivals.until(ctx, isNew)
	return arrived.Sub(answered), err
}
