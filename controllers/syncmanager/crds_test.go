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

	"github.com/synchub-dev/synchub/controllers/plan/health"
	"github.com/synchub-dev/synchub/controllers/syncmanager/crd"
)

func TestStateOfInstalledCRD(t *testing.T) {
	for name, c := range map[string]struct {
		state  crd.State
		synced bool
		failed string
	}{
		"just asked for":           {crd.State{Reason: crd.ReasonPending}, false, ""},
		"not established yet":      {crd.State{Reason: crd.ReasonNotEstablished, Installed: true}, false, ""},
		"the cluster is away":      {crd.State{Reason: crd.ReasonTargetUnreachable}, false, ""},
		"served":                   {crd.State{Reason: crd.ReasonInSync, Ready: true}, true, ""},
		"somebody else's, and fit": {crd.State{Reason: crd.ReasonNotOwned, Ready: true}, true, ""},
		"no right":                 {crd.State{Reason: crd.ReasonForbidden, Message: "no"}, false, crd.ReasonForbidden},
		"names taken":              {crd.State{Reason: crd.ReasonNamesNotAccepted, Message: "taken"}, false, crd.ReasonNamesNotAccepted},
		"another version":          {crd.State{Reason: crd.ReasonVersionNotServed, Message: "v2"}, false, crd.ReasonVersionNotServed},
	} {
		got := stateOfInstalledCRD(c.state)
		failed := ""
		if got.Failure != nil {
			failed = got.Failure.Reason
		}
		if got.Synced != c.synced || failed != c.failed || c.synced && got.Health.Status != health.Current {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
