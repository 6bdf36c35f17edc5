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

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// prepared returns a fixture on a replica that does not lead, with the configs known.
func prepared(t *testing.T) *fixture {
	f := newFixture(t)
	f.manager.StopSync(florin)
	f.target.Prepare = true
	f.manager.StartSync(f.target)
	setMatcher(f.manager, selecting("configmaps"))
	return f
}

// A replica that is not the leader runs the controllers that the leader has recorded, records nothing, and
// reports nothing. When it leads, the same controllers continue.
func TestPreparedControllersGoOnWhenTheReplicaLeads(t *testing.T) {
	f := prepared(t)
	f.expectReconciled([]string{"secrets"})
	secrets := schema.GroupResource{Resource: "secrets"}
	if _, ok := f.manager.View(florin); ok {
		t.Error("there is a view before the replica leads")
	}
	if _, known := NewFleetCounter(f.manager, entries{florin: entryWith("f", nil)}).Count(secrets); known {
		t.Error("the count is known before the replica leads")
	}
	before := f.controllers()["secrets"]
	f.expectReconciled([]string{"secrets"})

	f.target.Prepare = false
	f.manager.StartSync(f.target)
	if _, ok := f.manager.View(florin); ok {
		t.Error("there is a view before the new leader runs the controllers that are not prepared")
	}
	f.expectReconciled([]string{"configmaps", "secrets"}, "configmaps/v1 secrets/v1")
	if f.controllers()["secrets"] != before {
		t.Error("the prepared controller was restarted")
	}
	if _, ok := f.manager.View(florin); !ok {
		t.Error("there is no view though the replica leads")
	}
}

// If the leader has recorded a change since a SyncTarget was prepared, the preparation is discarded.
func TestPreparedWithAnotherInventoryBeginsAnew(t *testing.T) {
	f := prepared(t)
	f.expectReconciled([]string{"secrets"})
	before, _ := f.manager.get(florin)
	f.manager.StartSync(f.target)
	if found, _ := f.manager.get(florin); found != before {
		t.Error("the state was replaced without a reason")
	}
	f.target.WrittenResources = parseWritten("configmaps/v1 secrets/v1")
	f.target.Prepare = false
	f.manager.StartSync(f.target)
	if found, _ := f.manager.get(florin); found == before || found.isPreparing() {
		t.Error("an outdated state is still used")
	}
	setMatcher(f.manager, selecting("configmaps"))
	f.expectReconciled([]string{"configmaps", "secrets"})
}

func TestHasRecorded(t *testing.T) {
	resource := resources("secrets")[0]
	for name, test := range map[string]struct {
		inventory string
		apis      []string
		want      bool
	}{
		"recorded":                       {"secrets/v1", []string{"secrets/v1"}, true},
		"not recorded":                   {"configmaps/v1", []string{"secrets/v1"}, false},
		"in another version":             {"secrets/v2", []string{"secrets/v1"}, false},
		"only for others":                {"secrets/v1<configmaps", []string{"secrets/v1"}, false},
		"with its conversion":            {"secrets/v1 vaults.x/v1<secrets", []string{"secrets/v1", "vaults.x/v1"}, true},
		"a conversion that is not there": {"secrets/v1", []string{"secrets/v1", "vaults.x/v1"}, false},
		"a conversion of another":        {"secrets/v1 vaults.x/v1<configmaps", []string{"secrets/v1", "vaults.x/v1"}, false},
	} {
		if got := parseWritten(test.inventory).contain(resource, targetsOf(test.apis...)); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
