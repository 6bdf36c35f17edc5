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

package version

import (
	"strings"
	"testing"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

func TestVersionsOfTheHub(t *testing.T) {
	reported := func(versions ...string) (list []edgev2alpha1.SyncTarget) {
		for _, version := range versions {
			list = append(list, edgev2alpha1.SyncTarget{Status: edgev2alpha1.SyncTargetStatus{HubVersion: version}})
		}
		return list
	}
	for name, test := range map[string]struct {
		syncTargets []edgev2alpha1.SyncTarget
		versions    string
		warning     string
	}{
		"none":               {},
		"nothing reported":   {syncTargets: reported("", "")},
		"the plugin's":       {syncTargets: reported("v0.1.0", "", "v0.1.0"), versions: "v0.1.0"},
		"another one":        {syncTargets: reported("v0.2.0"), versions: "v0.2.0", warning: "the plugin has version v0.1.0, and the hub has version v0.2.0"},
		"during an upgrade":  {syncTargets: reported("v0.2.0", "v0.1.0"), versions: "v0.1.0 v0.2.0", warning: "several versions of the hub"},
		"an unstamped build": {syncTargets: reported("dev"), versions: "dev", warning: "the hub has version dev"},
	} {
		found := document{Plugin: Build{Version: "v0.1.0"}, Hub: versionsOf(test.syncTargets)}
		if got := strings.Join(found.Hub, " "); got != test.versions {
			t.Errorf("%s: got %q", name, got)
		}
		if got := describeSkew(found); (got == "") != (test.warning == "") || !strings.Contains(got, test.warning) {
			t.Errorf("%s: it warns %q", name, got)
		}
	}
}
