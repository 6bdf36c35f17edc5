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

	"github.com/synchub-dev/synchub/test/bench/figures"
	"github.com/synchub-dev/synchub/test/framework/fleet"
)

const (
	// comers is how many targets come and go, most how many of them are away at once.
	comers, most = 8, 3
	// varied is how many ConfigMaps each of their mailboxes has at most.
	varied = 50
	// pace is the time between two changes, each change of a target's being there among so many.
	pace, away = 50 * time.Millisecond, 100
	// dismissed is after how long idle workers have ended; see docs/design/0012-at-rest.md.
	dismissed = 75 * time.Second

	longNamespace = "hub-long"
)

// comer is a place that the hub can be kept from.
type comer struct {
	*place
	gate   *fleet.Gate
	isAway bool
	// behind is a client for the target past the gate.
	behind dynamic.Interface
}

// long changes what mailboxes have at random while targets come and go, and measures from time to time what the hub holds
// when all targets are there, have the same objects, and nothing happens.
func long(ctx context.Context, w *World) ([]figures.Row, error) {
	comers, err := w.comers(ctx)
	if err != nil {
		return nil, err
	}
	// The same changes in each run.
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // nothing is kept secret by it
	what := fmt.Sprintf("%s of changes while targets come and go, looked at %d times, against the beginning: ", w.Long, w.Parts)
	heap := figures.Row{What: what + "heap", Unit: "MiB", Limit: new(1.1)}
	goroutines := figures.Row{What: what + "goroutines", Limit: new(1.05)}
	watches := figures.Row{What: what + "watches of these targets", Limit: new(1.0)}
	// What is made once and stays, such as a series of a metric, is made before the beginning.
	if err := w.churn(ctx, random, comers, w.Long/time.Duration(2*w.Parts)); err != nil {
		return nil, err
	}
	beginning, err := w.standing(ctx, comers)
	if err != nil {
		return nil, err
	}
	for part := range w.Parts {
		if err := w.churn(ctx, random, comers, w.Long/time.Duration(w.Parts)); err != nil {
			return nil, err
		}
		now, err := w.standing(ctx, comers)
		if err != nil {
			return nil, err
		}
		w.progress("part %d of %d: heap %.1f MiB, %.0f goroutines, %.0f watches; at the beginning %.1f MiB, %.0f, %.0f", part+1, w.Parts,
			now.heap/mebi, now.goroutines, now.watches, beginning.heap/mebi, beginning.goroutines, beginning.watches)
		heap.Hub, heap.Direct = append(heap.Hub, now.heap/mebi), append(heap.Direct, beginning.heap/mebi)
		goroutines.Hub, goroutines.Direct = append(goroutines.Hub, now.goroutines), append(goroutines.Direct, beginning.goroutines)
		watches.Hub, watches.Direct = append(watches.Hub, now.watches), append(watches.Direct, beginning.watches)
	}
	return []figures.Row{heap, goroutines, watches}, nil
}

// comers registers targets that can be shut.
func (w *World) comers(ctx context.Context) ([]*comer, error) {
	members, err := w.Fleet.Grow(ctx, comers)
	if err != nil {
		return nil, err
	}
	all := make([]*comer, len(members))
	places := make([]*place, len(members))
	for i, member := range members {
		places[i] = &place{name: member.Name, kubeconfig: member.Kubeconfig}
		all[i] = &comer{place: places[i], gate: member.Gate}
		if all[i].behind, err = client(member.Config); err != nil {
			return nil, err
		}
	}
	return all, w.each(ctx, places, func(ctx context.Context, at *place) error {
		if err := w.register(ctx, at); err != nil {
			return err
		}
		if err := at.prepare(ctx, longNamespace); err != nil {
			return err
		}
		return at.configure(ctx, config(longNamespace, false, configMaps))
	})
}

// churn makes one change after the other.
func (w *World) churn(ctx context.Context, random *rand.Rand, comers []*comer, duration time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, duration+limit)
	defer cancel()
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	for end := time.Now().Add(duration); time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		one := comers[random.IntN(len(comers))]
		change := one.vary
		if random.IntN(away) == 0 {
			if !one.isAway && countAway(comers) >= most {
				continue
			}
			change = one.comeOrGo
		}
		if err := change(ctx, random); err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
	}
	return nil
}

func countAway(comers []*comer) (count int) {
	for _, one := range comers {
		if one.isAway {
			count++
		}
	}
	return count
}

// comeOrGo shuts or opens the way to a target.
func (c *comer) comeOrGo(ctx context.Context, _ *rand.Rand) error {
	if c.isAway {
		c.isAway = false
		return c.gate.Open(ctx)
	}
	c.isAway = true
	return c.gate.Shut()
}

// vary makes, changes or deletes an object of the mailbox, or has it drift on the target.
func (c *comer) vary(ctx context.Context, random *rand.Rand) error {
	name := fmt.Sprintf("object-%d", random.IntN(varied))
	above, below := c.above.Resource(configMaps).Namespace(longNamespace), c.behind.Resource(configMaps).Namespace(longNamespace)
	entry := fmt.Appendf(nil, `{"data": {"entry": "%d"}}`, random.IntN(1_000_000))
	var err error
	switch random.IntN(4) {
	case 0:
		err = above.Delete(ctx, name, metav1.DeleteOptions{})
	case 1:
		_, err = below.Patch(ctx, name, types.MergePatchType, entry, metav1.PatchOptions{})
	default:
		_, err = above.Patch(ctx, name, types.MergePatchType, entry, metav1.PatchOptions{})
		if apierrors.IsNotFound(err) {
			_, err = above.Create(ctx, configMap(longNamespace, name), metav1.CreateOptions{})
		}
	}
	return ignoreNotFound(err)
}

// standing is what is held while nothing happens.
type standing struct{ heap, goroutines, watches float64 }

// standing brings all targets back and all mailboxes to the same content, waits until the targets have it and the hub has
// been at rest long enough for its workers to end, and measures.
func (w *World) standing(ctx context.Context, comers []*comer) (now standing, err error) {
	for _, one := range comers {
		if one.isAway {
			if err := one.comeOrGo(ctx, nil); err != nil {
				return now, err
			}
		}
	}
	for _, one := range comers {
		if err := one.complete(ctx); err != nil {
			return now, fmt.Errorf("%s: %w", one.name, err)
		}
	}
	restful, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := w.Hub.AwaitRest(restful, dismissed); err != nil {
		return now, err
	}
	held, err := w.footprint(ctx)
	if err != nil {
		return now, err
	}
	for _, one := range comers {
		now.watches += float64(one.gate.Watches())
	}
	now.heap, now.goroutines = held.heap, held.goroutines
	return now, nil
}

// complete has the mailbox hold all objects, with one content, and returns when the target has the same.
func (c *comer) complete(ctx context.Context) error {
	above, below := c.above.Resource(configMaps).Namespace(longNamespace), c.behind.Resource(configMaps).Namespace(longNamespace)
	for i := range varied {
		object := configMap(longNamespace, fmt.Sprintf("object-%d", i))
		_, err := above.Create(ctx, object, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			_, err = above.Patch(ctx, object.GetName(), types.MergePatchType, []byte(edit.patch(0)), metav1.PatchOptions{})
		}
		if err != nil {
			return err
		}
	}
	return poll(ctx, time.Second, func() (bool, error) {
		for i := range varied {
			object, err := below.Get(ctx, fmt.Sprintf("object-%d", i), metav1.GetOptions{})
			if err != nil || edit.shows(object) != "0" {
				return false, ignoreNotFound(err)
			}
		}
		return true, nil
	})
}
