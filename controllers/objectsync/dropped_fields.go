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
	"slices"
	gosync "sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxDroppedFields bounds the fields that are reported for each config.
const maxDroppedFields = 16

// droppedFields are fields of target objects that the mailbox's schema does not have, by the configs that select the objects.
// A field stays listed until the controller ends.
type droppedFields struct {
	lock     gosync.Mutex
	byConfig map[string][]string
}

// add notes fields that the mailbox drops, and reports whether any is new.
func (d *droppedFields) add(configs, paths []string) (changed bool) {
	d.lock.Lock()
	defer d.lock.Unlock()
	for _, config := range configs {
		for _, path := range paths {
			known := d.byConfig[config]
			at, found := slices.BinarySearch(known, path)
			if found || len(known) >= maxDroppedFields {
				continue
			}
			if d.byConfig == nil {
				d.byConfig = map[string][]string{}
			}
			d.byConfig[config], changed = slices.Insert(known, at, path), true
		}
	}
	return changed
}

func (d *droppedFields) addTo(summaries map[string]*ConfigSummary, resource schema.GroupResource) {
	d.lock.Lock()
	defer d.lock.Unlock()
	for config, paths := range d.byConfig {
		summary := summaryOf(summaries, config)
		for _, path := range paths {
			summary.Dropped = append(summary.Dropped, resource.String()+" "+path)
		}
		slices.Sort(summary.Dropped)
	}
}
