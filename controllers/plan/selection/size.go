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

package selection

import "k8s.io/apimachinery/pkg/labels"

// Estimates of the heap size of a matcher's parts on 64-bit platforms, in bytes, measured with TestSizeOfMatcher. The matcher
// shares strings with the configs.
const (
	entrySize       = 400
	ruleSize        = 250
	scopeSize       = 300
	nameSize        = 40
	keySize         = 130
	selectorSize    = 100
	requirementSize = 100
	valueSize       = 16
	settingsSize    = 100
	ignoredSize     = 100
	// A byte of a path can become a step.
	ignoredByteSize = 32
)

// Size estimates the memory of the matcher in bytes. The matcher of a config may be much larger than the config.
func (m *Matcher) Size() int64 { return m.size }

// countRule counts a new rule. A scope that several rules share is counted once.
func (m *Matcher) countRule(added *rule) {
	m.size += ruleSize + *added.size
	*added.size = 0
	if !added.scan {
		m.size += keySize * int64(len(added.namespaces.names)) * int64(len(added.names.names))
	}
}

// sizeOfScope estimates the memory of the names of a scope. A matcher has the namespaces twice.
func sizeOfScope(scope nameScope) int64 {
	return scopeSize + nameSize*int64(2*len(scope.namespaces.names)+len(scope.names.names))
}

// sizeOfSelector estimates the memory of a selector.
func sizeOfSelector(selector labels.Selector) int64 {
	size := int64(selectorSize)
	requirements, _ := selector.Requirements()
	for i := range requirements {
		size += requirementSize + valueSize*int64(len(requirements[i].ValuesUnsorted()))
	}
	return size
}
