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

// Reason is the reason why a version was chosen.
type Reason string

const (
	// Named: an entry of a config names the version, even if the target does not serve it.
	Named Reason = "Named"
	// Preferred: no entry names a version. This is the first published version, and the target serves it or has not responded
	// yet.
	Preferred Reason = "Preferred"
	// Newest: the target does not serve the preferred version. This is the first published version that the target serves.
	Newest Reason = "Newest"
	// NotServed: the target serves none of the published versions.
	NotServed Reason = "Unserved"
)

// Choice is the version in which objects of a resource are written to a target, with the reason.
type Choice struct {
	Version string
	Reason  Reason
}

// Target holds the known facts about a target.
type Target struct {
	// Served are the versions in which the target serves the resource. Known is false if they are unknown.
	Served []string
	Known  bool
	// Previous is the version in which objects were written last; empty if none were.
	Previous string
}

// Choose chooses one of the published versions. The list must not be empty, and begins with the preferred version. named is the
// version that an entry names; empty if none does.
//
// Before the target has responded, and while it serves none of the versions, objects keep their version: a change costs a write
// for each object.
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
