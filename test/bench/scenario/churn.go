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
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/synchub-dev/synchub/test/bench/report"
	"github.com/synchub-dev/synchub/test/framework/fleet"
)

const (
	// churnTargets is the number of targets that come and go, and maxDisconnected how many of them are away at a time.
	churnTargets, maxDisconnected = 8, 3
	// maxConfigMaps is the maximum number of ConfigMaps in each of their mailboxes.
	maxConfigMaps = 50
	// changeInterval is the time between two changes. One in disconnectOdds changes connects or disconnects a target.
	changeInterval, disconnectOdds = 50 * time.Millisecond, 100
	// workerIdleTimeout is the time after which idle workers have ended; see docs/design/0012-at-rest.md.
	workerIdleTimeout = 75 * time.Second

	longNamespace = "hub-long"
)

// churnTarget is a target that can be disconnected from the hub.
type churnTarget struct {
	*testTarget
	proxy          *fleet.CountingProxy
	isDisconnected bool
	// directClient is a client for the target that bypasses the proxy.
	directClient dynamic.Interface
}

// long changes mailboxes at random while targets come and go. From time to time it measures the hub's memory while all
// targets are connected, have the same objects, and the hub is idle.
func long(ctx context.Context, w *Env) ([]report.Row, error) {
	targets, err := w.newChurnTargets(ctx)
	if err != nil {
		return nil, err
	}
	// Every run makes the same changes.
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // nothing is kept secret by it
	what := fmt.Sprintf("%s of changes while targets come and go, looked at %d times, against the beginning: ", w.Long, w.Parts)
	heap := report.Row{What: what + "heap", Unit: "MiB", Limit: new(1.1)}
	goroutines := report.Row{What: what + "goroutines", Limit: new(1.05)}
	watches := report.Row{What: what + "watches of these targets", Limit: new(1.0)}
	// The first changes create everything that is created once and stays, such as series of metrics, before the first
	// measurement.
	if err := w.churn(ctx, random, targets, w.Long/time.Duration(2*w.Parts)); err != nil {
		return nil, err
	}
	beginning, err := w.measureSteady(ctx, targets)
	if err != nil {
		return nil, err
	}
	for part := range w.Parts {
		if err := w.churn(ctx, random, targets, w.Long/time.Duration(w.Parts)); err != nil {
			return nil, err
		}
		now, err := w.measureSteady(ctx, targets)
		if err != nil {
			return nil, err
		}
		w.progress("part %d of %d: heap %.1f MiB, %.0f goroutines, %.0f watches; at the beginning %.1f MiB, %.0f, %.0f", part+1, w.Parts,
			now.heap/mebi, now.goroutines, now.watches, beginning.heap/mebi, beginning.goroutines, beginning.watches)
		heap.Hub, heap.Direct = append(heap.Hub, now.heap/mebi), append(heap.Direct, beginning.heap/mebi)
		goroutines.Hub, goroutines.Direct = append(goroutines.Hub, now.goroutines), append(goroutines.Direct, beginning.goroutines)
		watches.Hub, watches.Direct = append(watches.Hub, now.watches), append(watches.Direct, beginning.watches)
	}
	return []report.Row{heap, goroutines, watches}, nil
}

// newChurnTargets registers targets that can be disconnected.
func (w *Env) newChurnTargets(ctx context.Context) ([]*churnTarget, error) {
	members, err := w.Fleet.Grow(ctx, churnTargets)
	if err != nil {
		return nil, err
	}
	all := make([]*churnTarget, len(members))
	targets := make([]*testTarget, len(members))
	for i, member := range members {
		targets[i] = &testTarget{name: member.Name, kubeconfig: member.Kubeconfig}
		all[i] = &churnTarget{testTarget: targets[i], proxy: member.CountingProxy}
		if all[i].directClient, err = client(member.Config); err != nil {
			return nil, err
		}
	}
	return all, w.each(ctx, targets, func(ctx context.Context, at *testTarget) error {
		if err := w.register(ctx, at); err != nil {
			return err
		}
		if err := at.prepare(ctx, longNamespace); err != nil {
			return err
		}
		return at.configure(ctx, config(longNamespace, false, configMaps))
	})
}

// churn makes changes until the duration is over.
func (w *Env) churn(ctx context.Context, random *rand.Rand, targets []*churnTarget, duration time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, duration+limit)
	defer cancel()
	ticker := time.NewTicker(changeInterval)
	defer ticker.Stop()
	for end := time.Now().Add(duration); time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		one := targets[random.IntN(len(targets))]
		change := one.changeObject
		if random.IntN(disconnectOdds) == 0 {
			if !one.isDisconnected && countDisconnected(targets) >= maxDisconnected {
				continue
			}
			change = one.toggleConnection
		}
		if err := change(ctx, random); err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
	}
	return nil
}

func countDisconnected(targets []*churnTarget) (count int) {
	for _, one := range targets {
		if one.isDisconnected {
			count++
		}
	}
	return count
}

// toggleConnection closes or opens the proxy of a target.
func (c *churnTarget) toggleConnection(ctx context.Context, _ *rand.Rand) error {
	if c.isDisconnected {
		c.isDisconnected = false
		return c.proxy.Open(ctx)
	}
	c.isDisconnected = true
	return c.proxy.Close()
}

// changeObject creates, updates or deletes an object in the mailbox, or makes it drift on the target.
func (c *churnTarget) changeObject(ctx context.Context, random *rand.Rand) error {
	name := fmt.Sprintf("object-%d", random.IntN(maxConfigMaps))
	mailbox, target := c.mailbox.Resource(configMaps).Namespace(longNamespace), c.directClient.Resource(configMaps).Namespace(longNamespace)
	entry := fmt.Appendf(nil, `{"data": {"entry": "%d"}}`, random.IntN(1_000_000))
	var err error
	switch random.IntN(4) {
	case 0:
		err = mailbox.Delete(ctx, name, metav1.DeleteOptions{})
	case 1:
		_, err = target.Patch(ctx, name, types.MergePatchType, entry, metav1.PatchOptions{})
	default:
		_, err = mailbox.Patch(ctx, name, types.MergePatchType, entry, metav1.PatchOptions{})
		if apierrors.IsNotFound(err) {
			_, err = mailbox.Create(ctx, configMap(longNamespace, name), metav1.CreateOptions{})
		}
	}
	return ignoreNotFound(err)
}

// steadyState holds the measurements of an idle hub.
type steadyState struct{ heap, goroutines, watches float64 }

// measureSteady reconnects all targets and restores the same content in all mailboxes. It waits until the targets have this
// content and the hub has been idle long enough for its workers to end. Then it measures.
func (w *Env) measureSteady(ctx context.Context, targets []*churnTarget) (now steadyState, err error) {
	for _, one := range targets {
		if one.isDisconnected {
			if err := one.toggleConnection(ctx, nil); err != nil {
				return now, err
			}
		}
	}
	for _, one := range targets {
		if err := one.restoreObjects(ctx); err != nil {
			return now, fmt.Errorf("%s: %w", one.name, err)
		}
	}
	restful, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := w.Hub.WaitIdle(restful, workerIdleTimeout); err != nil {
		return now, err
	}
	held, err := w.footprint(ctx)
	if err != nil {
		return now, err
	}
	for _, one := range targets {
		now.watches += float64(one.proxy.Watches())
	}
	now.heap, now.goroutines = held.heap, held.goroutines
	return now, nil
}

// restoreObjects restores all objects in the mailbox with the same content, and returns when the target has them.
func (c *churnTarget) restoreObjects(ctx context.Context) error {
	mailbox, target := c.mailbox.Resource(configMaps).Namespace(longNamespace), c.directClient.Resource(configMaps).Namespace(longNamespace)
	for i := range maxConfigMaps {
		object := configMap(longNamespace, fmt.Sprintf("object-%d", i))
		_, err := mailbox.Create(ctx, object, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			_, err = mailbox.Patch(ctx, object.GetName(), types.MergePatchType, []byte(edit.patch(0)), metav1.PatchOptions{})
		}
		if err != nil {
			return err
		}
	}
	return poll(ctx, time.Second, func() (bool, error) {
		for i := range maxConfigMaps {
			object, err := target.Get(ctx, fmt.Sprintf("object-%d", i), metav1.GetOptions{})
			if err != nil || edit.shows(object) != "0" {
				return false, ignoreNotFound(err)
			}
		}
		return true, nil
	})
}
