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
package assignment

import (
	"reflect"
	"sync"

	"github.com/synchub-dev/synchub/controllers/internal/topic"
)

// Store holds the rules for all agents on the hub. It is safe for concurrent use.
type Store struct {
	// Changed notifies about new rules.
	Changed topic.Topic[struct{}]

	lock  sync.Mutex
	rules Rules
	// published is false until the hub knows which resources are published.
	published bool
}

// SetResources replaces all rules but the CRDs.
func (s *Store) SetResources(rules Rules) {
	s.lock.Lock()
	rules.CRDs = s.rules.CRDs
	changed := !s.published || !reflect.DeepEqual(s.rules, rules)
	s.rules, s.published = rules, true
	s.lock.Unlock()
	if changed {
		s.Changed.Publish(struct{}{})
	}
}

// SetCRDs replaces the CRDs.
func (s *Store) SetCRDs(crds []CRD) {
	s.lock.Lock()
	s.rules.CRDs = crds
	s.lock.Unlock()
	s.Changed.Publish(struct{}{})
}

// Rules returns the rules; known is false until there are any.
func (s *Store) Rules() (rules Rules, known bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.rules, s.published
}
