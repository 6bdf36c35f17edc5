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
	"k8s.io/client-go/util/workqueue"

	"github.com/synchub-dev/synchub/provider/topic"
)

// Controllers are notified once when a SyncTarget stops being synced, once when it is synced again, and not
// otherwise.
func TestNotSynced(t *testing.T) {
	manager, _ := newManager(t)
	told := 0
	counting := topic.Source(&manager.ObjectsChanged, func(workqueue.TypedRateLimitingInterface[types.UID], types.UID) { told++ })
	if err := counting.Start(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	away := NotSynced{SyncTarget: "florin", Mailbox: "m", Reason: "TargetUnreachable"}
	for i, step := range []struct {
		halt NotSynced
		told int
	}{{NotSynced{}, 0}, {away, 1}, {away, 1}, {NotSynced{}, 2}, {NotSynced{}, 2}} {
		manager.SetNotSynced(florin, step.halt)
		if got := manager.NotSynced(florin); got != step.halt || told != step.told {
			t.Errorf("step %d: got %+v, notified %d times", i, got, told)
		}
	}
	manager.SetNotSynced(florin, away)
	manager.Forget(florin)
	if told != 4 || len(manager.decisions) > 0 {
		t.Errorf("notified %d times, left are %v", told, manager.decisions)
	}
}
