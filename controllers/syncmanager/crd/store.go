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

package crd

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/synchub-dev/synchub/provider/topic"
)

// Store contains the CRDs that targets must have, one for each PublishedResource that installs its CRD. The zero value is ready to use. It
// is safe for concurrent use.
type Store struct {
	changes topic.Topic[struct{}]

	lock sync.Mutex
	// all is sorted, the oldest PublishedResource first. The slice is replaced, never changed.
	all []Installation
}

// Changes publishes after each change.
func (s *Store) Changes() *topic.Topic[struct{}] { return &s.changes }

// All returns all installations, the oldest PublishedResource first. The caller must not change them.
func (s *Store) All() []Installation {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.all
}

// Set stores the CRD for a PublishedResource.
func (s *Store) Set(installation Installation) {
	s.replace(installation.PublishedResource, installation)
}

// Delete removes the CRD for a PublishedResource.
func (s *Store) Delete(publishedResource string) { s.replace(publishedResource) }

func (s *Store) replace(publishedResource string, with ...Installation) {
	s.lock.Lock()
	before := s.all
	s.all = append(slices.DeleteFunc(slices.Clone(before), func(i Installation) bool { return i.PublishedResource == publishedResource }), with...)
	slices.SortFunc(s.all, func(a, b Installation) int {
		return cmp.Or(a.Created.Compare(b.Created.Time), strings.Compare(a.PublishedResource, b.PublishedResource))
	})
	changed := !slices.EqualFunc(before, s.all, Installation.equal)
	s.lock.Unlock()
	if changed {
		s.changes.Publish(struct{}{})
	}
}
