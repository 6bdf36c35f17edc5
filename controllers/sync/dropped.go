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

package sync

import (
	"slices"
	gosync "sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// droppedKept is how many fields are named for each config.
const droppedKept = 16

// dropped are the fields of objects of the target that the mailbox's schema does not have, by the configs that select the
// objects. What was once dropped is told until the controller ends.
type dropped struct {
	lock     gosync.Mutex
	byConfig map[string][]string
}

// notesDropped notes what the mailbox does not keep, and has it reported if it is new.
func (c *Controller) notesDropped(configs, paths []string) {
	if len(paths) > 0 && c.dropped.note(configs, paths) {
		c.Changed()
	}
}

func (d *dropped) note(configs, paths []string) (changed bool) {
	d.lock.Lock()
	defer d.lock.Unlock()
	for _, config := range configs {
		for _, path := range paths {
			known := d.byConfig[config]
			at, found := slices.BinarySearch(known, path)
			if found || len(known) >= droppedKept {
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

func (d *dropped) addTo(tallies map[string]*Tally, resource schema.GroupResource) {
	d.lock.Lock()
	defer d.lock.Unlock()
	for config, paths := range d.byConfig {
		tally := tallyOf(tallies, config)
		for _, path := range paths {
			tally.Dropped = append(tally.Dropped, resource.String()+" "+path)
		}
		slices.Sort(tally.Dropped)
	}
}
