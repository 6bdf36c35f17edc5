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

package apiexport

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// fakeBindings binds schemas like kcp: in order, up to the first conflict, and a bound schema stays bound. It
// does not bind a schema before it is established.
type fakeBindings struct {
	conflicts   map[logicalcluster.Name]map[string]bool
	bound       map[logicalcluster.Name]map[string]bool
	established map[string]time.Time
}

func (f *fakeBindings) bind(resources []apisv1alpha2.ResourceSchema, now time.Time) {
	for workspace, conflicts := range f.conflicts {
		for _, resource := range resources {
			if conflicts[resource.Name] {
				break
			}
			if !now.Before(f.established[resource.Name]) {
				f.bound[workspace][resource.Name] = true
			}
		}
	}
}

func (f *fakeBindings) unbound(resources []apisv1alpha2.ResourceSchema) map[logicalcluster.Name][]schema.GroupResource {
	missing := map[logicalcluster.Name][]schema.GroupResource{}
	for workspace, bound := range f.bound {
		for _, resource := range resources {
			if !bound[resource.Name] {
				missing[workspace] = append(missing[workspace], schema.GroupResource{Resource: resource.Name})
			}
		}
	}
	return missing
}

// newFakeBindings returns up to five workspaces. A third of the schemas conflict there, and half of them are
// established late.
func newFakeBindings(random *rand.Rand, resources []apisv1alpha2.ResourceSchema, now time.Time) *fakeBindings {
	kcp := &fakeBindings{conflicts: map[logicalcluster.Name]map[string]bool{}, bound: map[logicalcluster.Name]map[string]bool{}, established: map[string]time.Time{}}
	for _, resource := range resources {
		if random.IntN(2) == 0 {
			kcp.established[resource.Name] = now.Add(time.Duration(random.IntN(8000)) * time.Millisecond)
		}
	}
	for i := range 1 + random.IntN(5) {
		workspace := logicalcluster.Name(fmt.Sprintf("w%d", i))
		kcp.conflicts[workspace], kcp.bound[workspace] = map[string]bool{}, map[string]bool{}
		for _, resource := range resources {
			if random.IntN(3) == 0 {
				kcp.conflicts[workspace][resource.Name] = true
			}
		}
	}
	return kcp
}

// reorder changes the order of the resources for a thousand seconds. It returns the last one, and the number of changes.
func (f *fakeBindings) reorder(order *bindingOrder, resources []apisv1alpha2.ResourceSchema, now time.Time) (last []apisv1alpha2.ResourceSchema, writes int) {
	for range 1000 {
		now = now.Add(time.Second)
		f.bind(resources, now)
		order.record(f.unbound(resources), now)
		if isDue, _ := order.isDue(int64(writes), now); !isDue {
			continue
		}
		if next := moveToEnd(resources, order.last()); !slices.Equal(next, resources) {
			resources, writes = next, writes+1
		}
	}
	return resources, writes
}

// With any conflicts, each workspace gets all APIs that have no conflict there, and then the order stays.
func TestConflictsBlockNoOtherAPI(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test
		var resources []apisv1alpha2.ResourceSchema
		for i := range 2 + random.IntN(8) {
			resources = append(resources, apisv1alpha2.ResourceSchema{Name: fmt.Sprintf("r%d", i)})
		}
		order, now := &bindingOrder{}, time.Unix(10_000, 0)
		kcp := newFakeBindings(random, resources, now)
		resources, writes := kcp.reorder(order, resources, now)
		for workspace, conflicts := range kcp.conflicts {
			for _, resource := range resources {
				if kcp.bound[workspace][resource.Name] == conflicts[resource.Name] {
					t.Fatalf("seed %d: %s in %s is bound: %v, although it conflicts: %v", seed, resource.Name, workspace, kcp.bound[workspace][resource.Name], conflicts[resource.Name])
				}
			}
		}
		if last := order.last(); len(last) > 0 {
			t.Fatalf("seed %d: the order changes for ever, for %v", seed, last)
		}
		if most := 2 * minTrials * len(resources) * len(kcp.conflicts); writes > most {
			t.Fatalf("seed %d: the order changed %d times, and %d are enough", seed, writes, most)
		}
	}
}

func TestOrdersAreRare(t *testing.T) {
	order, now := &bindingOrder{}, time.Unix(10_000, 0)
	wait := func(generation int64, want time.Duration) {
		t.Helper()
		if isDue, after := order.isDue(generation, now); isDue || after != want {
			t.Fatalf("due: %v, wait %s instead of %s", isDue, after, want)
		}
		now = now.Add(want)
		if isDue, _ := order.isDue(generation, now); !isDue {
			t.Fatal("isDue is false after the delay")
		}
	}
	wait(1, minReorderInterval)
	for generation := int64(2); generation < 20; generation++ {
		order.moved()
		wait(generation, min(minReorderInterval<<(generation-2), maxReorderInterval))
	}
	now = now.Add(2 * maxReorderInterval)
	wait(20, minReorderInterval)
}
