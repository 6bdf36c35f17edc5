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

package scale

import (
	"context"
	"fmt"
	"time"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/test/bench/report"
	"github.com/synchub-dev/synchub/test/framework/fleet"
)

const (
	// editedMembers is at how many targets edits are measured.
	editedMembers = 20
	// roundsOfEdits is how often each of them is edited while nothing else happens.
	roundsOfEdits = 10
	// directName is an object in the mailboxes of edited targets that no config selects. It is synced by the test.
	directName = "direct"
)

// EditLatencies are the times from the answer to a change in a mailbox to its event on the target, in milliseconds: of the hub, and of a
// syncer of the test that does no more than pass the change on. Both take turns, since busy servers answer either of them later.
type EditLatencies struct{ Hub, Direct []float64 }

// String returns the 99th percentiles, and how many there are.
func (l EditLatencies) String() string {
	if len(l.Hub) == 0 {
		return "not reached"
	}
	return fmt.Sprintf("%.0f ms, %.0f ms by a direct syncer, of %d", report.Percentile(l.Hub, 99), report.Percentile(l.Direct, 99), len(l.Hub))
}

// edited is a target at which edits are measured. It observes its own objects in the mailbox and on the target.
type edited struct {
	name            string
	mailbox, target dynamic.ResourceInterface
	// inMailbox has the events of [directName], atTarget the events of both objects.
	inMailbox, atTarget watch.Interface
}

// newEdited returns the first of the members for edits, until release is called.
func (r *run) newEdited(ctx context.Context, members []*fleet.Member) (all []*edited, release func()) {
	syncTargets, err := r.syncTargets(ctx)
	r.Expect(err).NotTo(gomega.HaveOccurred())
	for _, member := range members[:min(editedMembers, len(members))] {
		one := &edited{
			name:    member.Name,
			mailbox: r.configMapsOf(r.Installation.InWorkspace(syncTargets[member.Name].Status.Mailbox.Workspace)),
			target:  r.configMapsOf(member.Config),
		}
		_, err := one.mailbox.Apply(ctx, directName, content(directName, 0), fromTest)
		r.Expect(err).NotTo(gomega.HaveOccurred())
		one.inMailbox, err = one.mailbox.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + directName})
		r.Expect(err).NotTo(gomega.HaveOccurred())
		one.atTarget, err = one.target.Watch(ctx, metav1.ListOptions{})
		r.Expect(err).NotTo(gomega.HaveOccurred())
		all = append(all, one)
	}
	return all, func() {
		for _, one := range all {
			one.inMailbox.Stop()
			one.atTarget.Stop()
		}
	}
}

var fromTest = metav1.ApplyOptions{FieldManager: "scale", Force: true}

func (r *run) configMapsOf(config *rest.Config) dynamic.ResourceInterface {
	client, err := dynamic.NewForConfig(config)
	r.Expect(err).NotTo(gomega.HaveOccurred())
	return client.Resource(configMaps).Namespace(namespace)
}

// content is a ConfigMap that shows the number of an edit.
func content(name string, number int) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": namespace},
		"data": map[string]any{"number": fmt.Sprint(number)},
	}}
}

// editsOf edits all targets in turn, for some rounds if done is nil and otherwise until it is closed.
func (r *run) editsOf(ctx context.Context, all []*edited, done <-chan struct{}) map[string]EditLatencies {
	found := map[string]EditLatencies{}
	for round := 0; done != nil || round < roundsOfEdits; round++ {
		for _, one := range all {
			select {
			case <-done:
				return found
			default:
			}
			latencies := found[one.name]
			latencies.Hub = append(latencies.Hub, report.In(time.Millisecond, r.editByHub(ctx, one))...)
			latencies.Direct = append(latencies.Direct, report.In(time.Millisecond, r.editDirectly(ctx, one))...)
			found[one.name] = latencies
		}
	}
	return found
}

// editByHub edits an object that the hub syncs.
func (r *run) editByHub(ctx context.Context, one *edited) time.Duration {
	const name = "object-0"
	r.lastEdit++
	_, err := one.mailbox.Patch(ctx, name, types.MergePatchType, fmt.Appendf(nil, `{"data": {"number": "%d"}}`, r.lastEdit), metav1.PatchOptions{})
	r.Expect(err).NotTo(gomega.HaveOccurred())
	answered := time.Now()
	r.awaitEvent(ctx, one.atTarget, name, r.lastEdit)
	return time.Since(answered)
}

// editDirectly edits an object that the test syncs.
func (r *run) editDirectly(ctx context.Context, one *edited) time.Duration {
	r.lastEdit++
	_, err := one.mailbox.Apply(ctx, directName, content(directName, r.lastEdit), fromTest)
	r.Expect(err).NotTo(gomega.HaveOccurred())
	answered := time.Now()
	r.awaitEvent(ctx, one.inMailbox, directName, r.lastEdit)
	_, err = one.target.Apply(ctx, directName, content(directName, r.lastEdit), fromTest)
	r.Expect(err).NotTo(gomega.HaveOccurred())
	r.awaitEvent(ctx, one.atTarget, directName, r.lastEdit)
	return time.Since(answered)
}

// awaitEvent returns when a watch shows the edit of an object.
func (r *run) awaitEvent(ctx context.Context, events watch.Interface, name string, number int) {
	ctx, cancel := context.WithTimeout(ctx, editTimeout)
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			r.Expect(ctx.Err()).NotTo(gomega.HaveOccurred(), "edit %d of %s does not arrive", number, name)
		case event, open := <-events.ResultChan():
			r.Expect(open).To(gomega.BeTrue(), "the watch of %s has ended", name)
			object, ok := event.Object.(*unstructured.Unstructured)
			if !ok || object.GetName() != name {
				continue
			}
			if shown, _, _ := unstructured.NestedString(object.Object, "data", "number"); shown == fmt.Sprint(number) {
				return
			}
		}
	}
}

// editTimeout is how long an edit may take, also of a target whose replica was killed.
const editTimeout = 2 * time.Minute

// latenciesOf gathers the latencies of those for which is returns true.
func latenciesOf(found map[string]EditLatencies, is func(name string) bool) (all EditLatencies) {
	for name, latencies := range found {
		if is(name) {
			all.Hub, all.Direct = append(all.Hub, latencies.Hub...), append(all.Direct, latencies.Direct...)
		}
	}
	return all
}
