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

package syncmanager

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Record says what the hub may have written of one resource of a target.
type Record struct {
	// Version is the one that the hub uses.
	Version string
	// Own is true if the mailbox's objects of the same resource go there.
	Own bool
	// ConvertedFrom are the mailbox's resources whose objects conversions turn into this one, sorted.
	ConvertedFrom []schema.GroupResource
}

func (r Record) equal(other Record) bool {
	return r.Version == other.Version && r.Own == other.Own && slices.Equal(r.ConvertedFrom, other.ConvertedFrom)
}

// from returns the record with one more source.
func (r Record) from(source schema.GroupResource, version string) Record {
	if !slices.Contains(r.ConvertedFrom, source) {
		r.ConvertedFrom = append(slices.Clone(r.ConvertedFrom), source)
		slices.SortFunc(r.ConvertedFrom, compareResources)
	}
	if !r.Own {
		r.Version = version
	}
	return r
}

func compareResources(a, b schema.GroupResource) int { return strings.Compare(a.String(), b.String()) }

// isRecorded tells whether the hub may have written objects of a mailbox's resource, as whatever resource.
func (t *managed) isRecorded(resource schema.GroupResource) bool {
	if t.recorded[resource].Own {
		return true
	}
	for _, record := range t.recorded {
		if slices.Contains(record.ConvertedFrom, resource) {
			return true
		}
	}
	return false
}
