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

package decide

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/sync/ownership"
	"github.com/synchub-dev/synchub/controllers/sync/transform"
)

// Held is an object in the mailbox where one from the target belongs.
type Held struct {
	UID types.UID
	// Ours is true if the object came up; only then Mark and Missing mean anything.
	Ours bool
	Mark ownership.Mark
	// Terminating is true if the object has a deletionTimestamp.
	Terminating bool
	// Retain is true for objects whose removal takes others with it, unless the PublishedResource allows that.
	Retain bool
	// Missing lists the paths of the desired object that the object does not hold.
	Missing []string
}

// Up decides about one object in the mailbox. held is nil if the mailbox has none of the name; tolerated lists the paths
// that the mailbox is known not to keep.
func Up(source Source, held *Held, tolerated []string) (Decision, error) {
	switch source.State {
	case InStep:
		return raised(source.Desired, held, tolerated), nil
	case Unknown, Suspended:
		return Decision{Action: None, Cause: source.State}, nil
	case Vanished, Deselected:
		return lowered(source, held), nil
	default:
		return Decision{}, fmt.Errorf("%q is not a state of a source on the target", source.State)
	}
}

func raised(desired *transform.Desired, held *Held, tolerated []string) Decision {
	switch {
	case held == nil:
		return Decision{Action: Create, Cause: Missing}
	case !held.Ours, !SameSource(desired.Mark, held.Mark):
		return Decision{Action: Conflict, Cause: Taken}
	case held.Terminating:
		return Decision{Action: None, Cause: Going}
	case !sameMark(desired.Mark, held.Mark):
		return Decision{Action: Update, Cause: Changed}
	case !contains(tolerated, held.Missing):
		return Decision{Action: Update, Cause: Drifted, Fields: held.Missing}
	default:
		return Decision{Action: None, Cause: InStep}
	}
}

func lowered(source Source, held *Held) Decision {
	switch {
	case held == nil, !held.Ours:
		return Decision{Action: None, Cause: source.State}
	case held.Terminating:
		return Decision{Action: None, Cause: Going}
	case !source.Proven:
		return Decision{Action: Prove, Cause: source.State}
	case held.Mark.Policy == ownership.PolicyDelete && !held.Retain:
		return Decision{Action: Delete, Cause: source.State}
	default:
		return Decision{Action: Release, Cause: source.State}
	}
}
