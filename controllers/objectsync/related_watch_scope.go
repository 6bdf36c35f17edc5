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

package objectsync

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/provider/targets"
)

// maxWatches bounds the names and namespaces with a watch of their own.
const maxWatches = 8

// relatedWatchScope is where an upsync cache must list related objects. It only grows, because a narrower scope would cost
// a relist.
type relatedWatchScope struct {
	names      map[types.NamespacedName]struct{}
	namespaces map[string]struct{}
	all        bool
}

// add extends the scope.
func (r *relatedWatchScope) add(names []types.NamespacedName, namespaces []string, all bool) {
	if r.names == nil {
		r.names, r.namespaces = map[types.NamespacedName]struct{}{}, map[string]struct{}{}
	}
	r.all = r.all || all
	for _, namespace := range namespaces {
		r.namespaces[namespace] = struct{}{}
	}
	for _, name := range names {
		if _, inside := r.namespaces[name.Namespace]; !inside {
			r.names[name] = struct{}{}
		}
	}
	if len(r.names)+len(r.namespaces) > maxWatches {
		for name := range r.names {
			r.namespaces[name.Namespace] = struct{}{}
		}
	}
	maps.DeleteFunc(r.names, func(name types.NamespacedName, _ struct{}) bool {
		_, inside := r.namespaces[name.Namespace]
		return inside
	})
	// Cluster-scoped objects can only be watched by name, or all together.
	if _, clusterScoped := r.namespaces[""]; clusterScoped || len(r.namespaces) > maxWatches {
		r.all = true
	}
	if r.all {
		clear(r.names)
		clear(r.namespaces)
	}
}

func (r *relatedWatchScope) contains(key types.NamespacedName) bool {
	_, name := r.names[key]
	_, namespace := r.namespaces[key.Namespace]
	return r.all || name || namespace
}

func (r *relatedWatchScope) isEmpty() bool {
	return !r.all && len(r.names) == 0 && len(r.namespaces) == 0
}

// String returns the same text for equal scopes, and different texts for different ones.
func (r *relatedWatchScope) String() string {
	return fmt.Sprintf("%t %q %q", r.all, r.sortedNames(), slices.Sorted(maps.Keys(r.namespaces)))
}

func (r *relatedWatchScope) sortedNames() []types.NamespacedName {
	return slices.SortedFunc(maps.Keys(r.names), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
}

// union returns the union of this scope and the scope of the selected objects.
func (r *relatedWatchScope) union(selected selection.Scope) targets.Scope {
	if r.all || selected.All {
		return targets.Scope{All: true}
	}
	total := relatedWatchScope{}
	total.add(slices.Concat(selected.Names, r.sortedNames()), slices.Concat(selected.Namespaces, slices.Sorted(maps.Keys(r.namespaces))), false)
	if total.all {
		return targets.Scope{All: true}
	}
	return targets.Scope{Namespaces: slices.Sorted(maps.Keys(total.namespaces)), Names: total.sortedNames()}
}
