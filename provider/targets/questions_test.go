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

package targets

import (
	"fmt"
	"testing"
	"time"
)

// Users name the kinds that a target is asked for, and may name others for ever.
func TestQuestionsAreForgotten(t *testing.T) {
	var known resolutions
	unawaited, now := newUnawaited(), time.Unix(0, 0)
	for number := range 3 * maxQuestions {
		asked := question{kind: fmt.Sprint("Kind", number)}
		known.put(asked, resolution{}, 0, now)
		unawaited.begin(asked)
		unawaited.end(asked, reply{err: ErrNotServed})
		if _, _, ok := known.get(asked); !ok {
			t.Fatal("what was found a moment ago is not known")
		}
	}
	if len(known.known) > maxQuestions || len(unawaited.said) > maxQuestions || len(unawaited.asking) > 0 {
		t.Errorf("%d and %d answers are remembered, and %d are awaited", len(known.known), len(unawaited.said), len(unawaited.asking))
	}
}
