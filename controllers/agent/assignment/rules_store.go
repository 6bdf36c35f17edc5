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

// RulesStore holds the rules for all agents on the hub. It is safe for concurrent use.
type RulesStore struct {
	// Changed notifies about new rules.
	Changed topic.Topic[struct{}]

	lock  sync.Mutex
	rules Rules
	// version grows with each change. published is false until the hub knows which resources are published.
	version   int64
	published bool
}

// SetResources replaces all rules but the CRDs.
func (s *RulesStore) SetResources(rules Rules) {
	s.update(func() {
		rules.CRDs = s.rules.CRDs
		s.published = true
	}, &rules)
}

// SetCRDs replaces the CRDs.
func (s *RulesStore) SetCRDs(crds []CRD) {
	var rules Rules
	s.update(func() {
		rules = s.rules
		rules.CRDs = crds
	}, &rules)
}

// update replaces the rules by those that prepare has completed, and notifies if they differ. prepare is called with the lock.
func (s *RulesStore) update(prepare func(), next *Rules) {
	s.lock.Lock()
	prepare()
	changed := s.version == 0 || !reflect.DeepEqual(s.rules, *next)
	if changed {
		s.rules = *next
		s.version++
	}
	s.lock.Unlock()
	if changed {
		s.Changed.Publish(struct{}{})
	}
}

// Rules returns the rules and their version, which is zero until the hub knows which resources are published.
func (s *RulesStore) Rules() (rules Rules, version int64) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if !s.published {
		return Rules{}, 0
	}
	return s.rules, s.version
}
