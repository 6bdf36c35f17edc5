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
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// position is the position of an informer in the history of a target. It is safe for concurrent use.
type position struct {
	lock sync.Mutex
	seen seen
}

// seen is the last state that an informer has observed.
type seen struct {
	// listVersion is the resourceVersion of the last list; empty before the first.
	listVersion string
	// newest is the newest change that a list or watch showed.
	newest change
}

// change is a state that an object had, or its deletion.
type change struct {
	key     types.NamespacedName
	uid     types.UID
	version string
	deleted bool
}

// listed is called with the objects of a list.
func (p *position) listed(objects []any, listVersion string) {
	next := seen{listVersion: listVersion}
	for _, object := range objects {
		if found, ok := changeOf(object, false); ok && isAfter(found.version, next.newest.version) {
			next.newest = found
		}
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	p.seen = next
}

// changed is called with the object of an event of the watch.
func (p *position) changed(object any, deleted bool) {
	found, ok := changeOf(object, deleted)
	if !ok {
		return
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	p.seen.newest = found
}

func (p *position) get() seen {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.seen
}

func changeOf(object any, deleted bool) (change, bool) {
	read, ok := object.(metav1.Object)
	if !ok {
		var err error
		if read, err = meta.Accessor(object); err != nil {
			return change{}, false
		}
	}
	return change{types.NamespacedName{Namespace: read.GetNamespace(), Name: read.GetName()}, read.GetUID(), read.GetResourceVersion(), deleted}, true
}

// version returns the resourceVersion up to which the informer knows the history.
func (s seen) version() string {
	if isAfter(s.newest.version, s.listVersion) {
		return s.newest.version
	}
	return s.listVersion
}

// isAfter reports whether resourceVersion a is later than b. An empty one is the earliest. One that is not a number is later
// than an empty one only.
func isAfter(a, b string) bool {
	if a == "" || b == "" {
		return a != ""
	}
	return isNewer(a, b)
}
