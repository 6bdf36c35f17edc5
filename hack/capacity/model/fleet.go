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

package model

import "fmt"

// Fleet is what is synced.
type Fleet struct {
	// Clusters is the number of SyncTargets.
	Clusters int
	// Objects is the number of objects in all mailboxes. Each mailbox has as many.
	Objects int
	// ObjectBytes is the mean size of an object.
	ObjectBytes float64
	// Selected is the part of the objects that a config selects.
	Selected float64
	// Resources is how many resources are synced with each target.
	Resources int
	// Edits is how many objects users change in a second, and StatusesPerEdit how many statuses come back for each.
	Edits, StatusesPerEdit float64
	// Shards is the number of kcp's shards. Zero stands for the least that is enough.
	Shards int
}

// Validate returns an error if a number is impossible.
func (f Fleet) Validate() error {
	switch {
	case f.Clusters < 1:
		return fmt.Errorf("a fleet has at least one cluster, not %d", f.Clusters)
	case f.Objects < 0 || f.ObjectBytes < 0 || f.Edits < 0 || f.StatusesPerEdit < 0:
		return fmt.Errorf("objects, their size, edits and statuses cannot be negative")
	case f.Selected < 0 || f.Selected > 1:
		return fmt.Errorf("the selected part is from 0 to 1, not %g", f.Selected)
	case f.Shards < 0:
		return fmt.Errorf("the number of shards cannot be negative")
	case f.Resources < 1:
		return fmt.Errorf("at least one resource is synced, not %d", f.Resources)
	}
	return nil
}

// changes returns how many edits and statuses there are in a second.
func (f Fleet) changes() float64 { return f.Edits * (1 + f.StatusesPerEdit) }

// Reading is what a replica reads of the mailboxes, if SyncTargets are divided.
type Reading string

// The three ways to read mailboxes.
const (
	// HoldAll: each replica watches all mailboxes and holds their objects.
	HoldAll Reading = "all"
	// HoldOwn: each replica watches all mailboxes, and drops the objects of those that are not its own.
	HoldOwn Reading = "drop"
	// WatchOwn: each replica watches its own mailboxes only.
	WatchOwn Reading = "own"
)

// Replica is what one replica may use.
type Replica struct {
	// Memory is the memory limit in bytes.
	Memory float64
	// Cores is how many processors it has.
	Cores float64
}
