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

package publishedresource

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// CRDInstallation is a CRD that the hub must install on targets for a PublishedResource.
type CRDInstallation struct {
	// PublishedResource, UID and Created are the name, UID and creation time of the PublishedResource.
	PublishedResource string
	UID               types.UID
	Created           metav1.Time
	// CRD has the names that targets use. It must not be changed.
	CRD *apiextensionsv1.CustomResourceDefinition
	// Version is the version that the hub syncs; empty for the preferred one.
	Version string
}

// CRDStore holds the CRDs to install on targets. It is safe for concurrent use.
type CRDStore struct {
	onChange func([]CRDInstallation)

	lock          sync.Mutex
	installations map[string]CRDInstallation
}

// NewCRDStore returns an empty store. After each change the store calls changed with all installations, the oldest
// PublishedResource first. The function must not block, and must not call the store.
func NewCRDStore(changed func(all []CRDInstallation)) *CRDStore {
	return &CRDStore{onChange: changed, installations: map[string]CRDInstallation{}}
}

// Set stores the CRD for a PublishedResource.
func (d *CRDStore) Set(definition CRDInstallation) {
	d.lock.Lock()
	defer d.lock.Unlock()
	before, ok := d.installations[definition.PublishedResource]
	if ok && apiequality.Semantic.DeepEqual(before, definition) {
		return
	}
	d.installations[definition.PublishedResource] = definition
	d.notify()
}

// Delete removes the CRD for a PublishedResource.
func (d *CRDStore) Delete(publishedResource string) {
	d.lock.Lock()
	defer d.lock.Unlock()
	if _, ok := d.installations[publishedResource]; ok {
		delete(d.installations, publishedResource)
		d.notify()
	}
}

// notify calls onChange with the lock held, so that the last call has the latest state.
func (d *CRDStore) notify() {
	d.onChange(slices.SortedFunc(maps.Values(d.installations), func(a, b CRDInstallation) int {
		return cmp.Or(a.Created.Compare(b.Created.Time), strings.Compare(a.PublishedResource, b.PublishedResource))
	}))
}
