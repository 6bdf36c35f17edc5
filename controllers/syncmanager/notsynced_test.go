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
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// countingObserver counts the notifications.
type countingObserver int

func (o *countingObserver) Changed(types.UID) { *o++ }

// The observer is notified once when a SyncTarget stops being synced, once when it is synced again, and not otherwise.
func TestNotSynced(t *testing.T) {
	manager, _ := newManager(t)
	var told countingObserver
	manager.SetObserver(&told)
	away := NotSynced{SyncTarget: "florin", Mailbox: "m", Reason: "TargetUnreachable"}
	for i, step := range []struct {
		halt NotSynced
		told countingObserver
	}{{NotSynced{}, 0}, {away, 1}, {away, 1}, {NotSynced{}, 2}, {NotSynced{}, 2}} {
		manager.SetNotSynced(florin, step.halt)
		if got := manager.NotSynced(florin); got != step.halt || told != step.told {
			t.Errorf("step %d: got %+v, told %d times", i, got, told)
		}
	}
	if len(manager.notSynced) > 0 {
		t.Errorf("left are %v", manager.notSynced)
	}
}
