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

package targets

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// watchCounter counts the open watches of ConfigMaps on a target: the watches of single names, and all other ones.
type watchCounter struct {
	lock          sync.Mutex
	singles, full int
}

func (w *watchCounter) before(request *http.Request) {
	query := request.URL.Query()
	if query.Get("watch") == "" || !strings.HasSuffix(request.URL.Path, "/configmaps") {
		return
	}
	count := func(change int) {
		w.lock.Lock()
		defer w.lock.Unlock()
		if query.Get("fieldSelector") != "" {
			w.singles += change
		} else {
			w.full += change
		}
	}
	count(1)
	context.AfterFunc(request.Context(), func() { count(-1) })
}

func (w *watchCounter) counts() [2]int {
	w.lock.Lock()
	defer w.lock.Unlock()
	return [2]int{w.singles, w.full}
}

func foreignConfigMap(namespace, name, value string) string {
	return "{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + ", namespace: " + namespace + ", labels: {key: \"" + value + "\"}}, data: {key: value}}"
}

// startNames runs a watch of names of ConfigMaps.
func startNames(t *testing.T, connection *Connection) (*NameWatch, func() []string) {
	t.Helper()
	recorded := &eventRecorder{}
	names := connection.Watches.NewNameWatch(configMaps, func(key types.NamespacedName) {
		recorded.lock.Lock()
		defer recorded.lock.Unlock()
		recorded.calls = append(recorded.calls, key.Name)
	})
	runInTest(t, names.Run)
	return names, recorded.all
}

func TestNameWatch(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	ctx := t.Context()
	target := steady(t)
	namespace := newNamespace(t, target)
	var open watchCounter
	connection := connectTo(t, newProxy(t, target, open.before))
	names, recorded := startNames(t, connection)
	key := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: namespace, Name: name} }
	apply := func(name, value string) {
		t.Helper()
		g.Expect(framework.Apply(ctx, target.Config, foreignConfigMap(namespace, name, value))).To(Succeed())
	}
	remove := func(name string) {
		t.Helper()
		g.Expect(framework.Delete(ctx, target.Config, configMaps, namespace, name)).To(Succeed())
	}
	seen := 0
	expect := func(what ...string) {
		t.Helper()
		suite.Eventually(t, func(g Gomega) { g.Expect(recorded()[seen:]).To(ConsistOf(what)) })
		seen += len(what)
	}
	// known returns once the states of the names are known.
	known := func(singles, full int) {
		t.Helper()
		suite.Eventually(t, func(g Gomega) {
			g.Expect(open.counts()).To(Equal([2]int{singles, full}))
			names.lock.Lock()
			defer names.lock.Unlock()
			for key, seen := range names.names {
				g.Expect(seen.observed).To(BeTrue(), key.String())
			}
			g.Expect(names.fullInformers != nil).To(Equal(full > 0))
		})
	}
	for _, name := range []string{"changes", "goes", "ignored"} {
		apply(name, "1")
	}

	// A free name is reported at once, and a taken one is not.
	for _, name := range []string{"changes", "goes", "free", "goes", "ignored"} {
		names.Add(key(name))
	}
	names.Remove(key("ignored"))
	names.Remove(key("never added"))
	known(3, 0)
	expect("free")
	apply("changes", "2")
	expect("changes")
	remove("goes")
	expect("goes")
	apply("goes", "1")
	expect("goes")

	// Many names need one watch, which misses nothing.
	names.Remove(key("free"))
	for index := range maxSingleNameWatches {
		apply(fmt.Sprintf("many-%d", index), "1")
	}
	for index := range maxSingleNameWatches {
		names.Add(key(fmt.Sprintf("many-%d", index)))
	}
	known(0, 1)
	apply("changes", "3")
	expect("changes")
	remove("many-0")
	expect("many-0")
	names.Add(key("free"))
	expect("free")
	names.Add(key("ignored"))
	names.Remove(key("ignored"))
	names.Add(key("ignored"))
	apply("ignored", "3")
	expect("ignored")

	// Few names have single watches again.
	for index := range maxSingleNameWatches {
		names.Remove(key(fmt.Sprintf("many-%d", index)))
	}
	known(4, 0)
	apply("many-1", "2")
	remove("changes")
	expect("changes")
	for _, name := range []string{"changes", "goes", "free", "ignored"} {
		names.Remove(key(name))
	}
	known(0, 0)
	g.Expect(recorded()[seen:]).To(BeEmpty())
}

// A change during an interruption is reported afterwards.
func TestNameWatchResumes(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	ctx := t.Context()
	target := steady(t)
	namespace, proxy := newNamespace(t, target), newFlakyProxy(t, target)
	connection := connectTo(t, kubeconfigAt(t, target, proxy.URL()))
	names, recorded := startNames(t, connection)
	for _, name := range []string{"changes", "goes", "stays"} {
		g.Expect(framework.Apply(ctx, target.Config, foreignConfigMap(namespace, name, "1"))).To(Succeed())
		names.Add(types.NamespacedName{Namespace: namespace, Name: name})
	}
	suite.Eventually(t, func(g Gomega) {
		names.lock.Lock()
		defer names.lock.Unlock()
		for _, seen := range names.names {
			g.Expect(seen.fingerprint).NotTo(BeEmpty())
		}
	})
	proxy.Disconnect()
	suite.Eventually(t, func(g Gomega) { g.Expect(connection.Health.IsUp()).To(BeFalse()) })
	g.Expect(framework.Apply(ctx, target.Config, foreignConfigMap(namespace, "changes", "2"))).To(Succeed())
	g.Expect(framework.Delete(ctx, target.Config, configMaps, namespace, "goes")).To(Succeed())
	proxy.Reconnect(t)
	connection.Health.ProbeNow()
	suite.Eventually(t, func(g Gomega) { g.Expect(recorded()).To(ConsistOf("changes", "goes")) })
}

// In any order of events, each change of a name is reported, and nothing else.
func TestNameChanges(t *testing.T) {
	name := types.NamespacedName{Namespace: "n", Name: "a"}
	for what, tt := range map[string]struct {
		versions []string
		recorded int
	}{
		"free at first":              {[]string{""}, 1},
		"taken at first":             {[]string{"1"}, 0},
		"unchanged events":           {[]string{"1", "1", "1"}, 0},
		"changed":                    {[]string{"1", "2", "2"}, 1},
		"deleted":                    {[]string{"1", "", ""}, 1},
		"deleted and recreated":      {[]string{"1", "", "3"}, 2},
		"free at first, taken later": {[]string{"", "3"}, 2},
	} {
		t.Run(what, func(t *testing.T) {
			recorded := 0
			w := (&Watches{}).NewNameWatch(configMaps, func(key types.NamespacedName) {
				if key != name {
					t.Errorf("got %s", key)
				}
				recorded++
			})
			w.Add(name)
			for _, version := range tt.versions {
				w.record(types.NamespacedName{Name: "other"}, version)
				w.record(name, version)
			}
			w.Remove(name)
			w.record(name, "9")
			NewWithT(t).Expect(recorded).To(Equal(tt.recorded))
		})
	}
}
