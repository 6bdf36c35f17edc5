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

package targetversion

import "slices"

// Reason is why a version was chosen.
type Reason string

const (
	// Named: an entry of a config names it, whether or not the target serves it.
	Named Reason = "Named"
	// Preferred: no entry names one. It is the published version that comes first, and as far as is known the target serves it.
	Preferred Reason = "Preferred"
	// Newest: the target does not serve the preferred one. Of the published versions that it serves this comes first.
	Newest Reason = "Newest"
	// NotServed: the target serves none of the published versions.
	NotServed Reason = "Unserved"
)

// Choice is the version in which objects of a resource are written to a target, and why.
type Choice struct {
	Version string
	Reason  Reason
}

// Target holds the known facts about a target.
type Target struct {
	// Served are the versions in which it serves the resource. Answered is false if it has not said that.
	Served []string
	Known  bool
	// Previous is the version in which objects were written last; empty if none were.
	Previous string
}

// Choose returns the choice among the published versions, of which there must be one, the preferred one first. Named is the one
// that an entry names; empty if none does.
//
// Before a target has answered, and while it serves none of the versions, objects stay in the version that they are in: to
// change it costs a write for each.
func Choose(published []string, named string, target Target) Choice {
	if slices.Contains(published, named) {
		return Choice{named, Named}
	}
	for i, version := range published {
		switch {
		case !slices.Contains(target.Served, version):
		case i == 0:
			return Choice{version, Preferred}
		default:
			return Choice{version, Newest}
		}
	}
	choice := Choice{published[0], Preferred}
	if slices.Contains(published, target.Previous) && target.Previous != published[0] {
		choice = Choice{target.Previous, Newest}
	}
	if target.Known {
		choice.Reason = NotServed
	}
	return choice
}
