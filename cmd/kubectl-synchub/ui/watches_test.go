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

package ui

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
)

// countingClient counts lists and watches by kind and field selector, which it does not apply.
type countingClient struct {
	fakeClient
	lock           sync.Mutex
	lists, watches map[string]int
	// open is the number of watches that nobody has stopped.
	open int
}

func newCountingClient(objects ...client.Object) *countingClient {
	return &countingClient{
		fakeClient: fakeClient{fake.NewClientBuilder().WithScheme(cli.Scheme).WithObjects(objects...).Build()}, lists: map[string]int{}, watches: map[string]int{},
	}
}

func (c *countingClient) count(in map[string]int, list client.ObjectList, options []client.ListOption) {
	c.lock.Lock()
	defer c.lock.Unlock()
	applied := (&client.ListOptions{}).ApplyOptions(options)
	in[fmt.Sprintf("%T %s", list, applied.FieldSelector)]++
}

func (c *countingClient) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	c.count(c.lists, list, options)
	return c.WithWatch.List(ctx, list)
}

func (c *countingClient) Watch(ctx context.Context, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
	c.count(c.watches, list, options)
	events, err := c.WithWatch.Watch(ctx, list)
	if err != nil {
		return nil, err
	}
	c.add(1)
	return &countedWatch{Interface: events, stop: sync.OnceFunc(func() { events.Stop(); c.add(-1) })}, nil
}

func (c *countingClient) add(by int) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.open += by
}

// requests returns the number of lists, of watches, and of open watches.
func (c *countingClient) requests() (lists, watches map[string]int, open int) {
	c.lock.Lock()
	defer c.lock.Unlock()
	return maps.Clone(c.lists), maps.Clone(c.watches), c.open
}

type countedWatch struct {
	watch.Interface
	stop func()
}

func (w *countedWatch) Stop() { w.stop() }

// openTabs loads pages, and follows their changes until closeAll is called.
func openTabs(t *testing.T, server http.Handler, changed *changes, pages ...string) (tabs []*countingWriter, closeAll context.CancelFunc) {
	t.Helper()
	ctx, closeAll := context.WithCancel(t.Context())
	for _, page := range pages {
		recorder := httptest.NewRecorder()
		server.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, page, nil))
		if recorder.Code != http.StatusOK {
			t.Errorf("%s: %d", page, recorder.Code)
		}
		tab := &countingWriter{}
		tabs = append(tabs, tab)
		go server.ServeHTTP(tab, httptest.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("/live?page=%s&version=%d", page, changed.version()), nil))
	}
	return tabs, closeAll
}

// All tabs share the watches of the command, one for each kind. A tab that is closed leaves nothing behind, and the command ends its watches.
func TestTabsShareWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := newCountingClient(&edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{Name: "florin"}}, &edgev2alpha1.EdgePlacement{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
		ctx, end := context.WithCancel(t.Context())
		w := &workspace{name: "root:fleet", isInventory: true, isWorkload: true, reader: &cli.Reader{Client: from}}
		changed := newChanges()
		if err := watchAll(ctx, []*workspace{w}, changed); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		lists, watches, open := from.requests()
		kinds := slices.Sorted(maps.Keys(watches))
		want := []string{
			"*v1.EventList reportingComponent=synchub",
			"*v2alpha1.EdgePlacementList ", "*v2alpha1.SinglePlacementSliceList ", "*v2alpha1.SyncTargetList ",
		}
		if !slices.Equal(kinds, want) || open != len(want) {
			t.Errorf("%d open watches of %q", open, kinds)
		}
		for kind, count := range watches {
			if count != 1 || lists[kind] != 1 {
				t.Errorf("%s: %d lists and %d watches", kind, lists[kind], count)
			}
		}

		server := newServer([]*workspace{w}, changed)
		tabs, closeTabs := openTabs(t, server, changed, "/", "/placements", "/events", "/targets/root:fleet/florin", "/", "/")
		synctest.Wait()
		if err := from.Create(t.Context(), &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "ready"}, InvolvedObject: corev1.ObjectReference{APIVersion: edgev2alpha1.GroupVersion.String(), Kind: "SyncTarget", Name: "florin"}}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for i, tab := range tabs {
			if tab.count() != 1 {
				t.Errorf("tab %d has %d contents after a change", i, tab.count())
			}
		}
		expectSame := func(when string, wantOpen int) {
			t.Helper()
			nowLists, nowWatches, nowOpen := from.requests()
			if !maps.Equal(nowLists, lists) || !maps.Equal(nowWatches, watches) || nowOpen != wantOpen {
				t.Errorf("%s: %v lists, %v watches, %d open", when, nowLists, nowWatches, nowOpen)
			}
		}
		expectSame("with six tabs", len(want))

		closeTabs()
		synctest.Wait()
		if len(changed.subscribers) > 0 {
			t.Errorf("%d subscribers without a tab", len(changed.subscribers))
		}
		expectSame("without a tab", len(want))
		end()
		synctest.Wait()
		expectSame("after the command", 0)
	})
}
