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

package check

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

func TestIsOldKCP(t *testing.T) {
	for version, want := range map[string]bool{
		"v1.34.2+kcp-v0.31.2": false, "v1.34.2+kcp-v0.30.9": true, "v1.36.0+kcp-v0.40.0": false, "v1.34.2": false, "v0.0.0-master+$Format:%H$": false,
	} {
		if got := isOldKCP(version); got != want {
			t.Errorf("%s is old: %t", version, got)
		}
	}
}

func TestTargets(t *testing.T) {
	now := time.Now()
	syncTarget := func(name string, status metav1.ConditionStatus, age time.Duration) edgev2alpha1.SyncTarget {
		made := edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if status != "" {
			made.Status.Conditions = []metav1.Condition{{Type: edgev2alpha1.ConditionReady, Status: status, Reason: "Said", Message: "so"}}
			made.Status.LastSyncerHeartbeatTime = &metav1.Time{Time: now.Add(-age)}
		}
		return made
	}
	var many []edgev2alpha1.SyncTarget
	for i := range 9 {
		many = append(many, syncTarget(fmt.Sprint("c", i), metav1.ConditionFalse, 0))
	}
	ready, away := syncTarget("ready", metav1.ConditionTrue, 0), syncTarget("away", metav1.ConditionFalse, 0)
	for name, test := range map[string]struct {
		syncTargets []edgev2alpha1.SyncTarget
		want        []string
	}{
		"none":             {nil, []string{"warning no cluster is registered"}},
		"all are ready":    {[]edgev2alpha1.SyncTarget{ready}, []string{"ok the SyncTarget is ready"}},
		"one is not":       {[]edgev2alpha1.SyncTarget{ready, away}, []string{"PROBLEM 1 of 2 SyncTargets are not ready: away (Said: so)"}},
		"many are not":     {many, []string{"c4 (Said: so) and 4 more"}},
		"no hub":           {[]edgev2alpha1.SyncTarget{syncTarget("a", "", 0)}, []string{"PROBLEM no hub has written to any SyncTarget (1)"}},
		"a hub of old":     {[]edgev2alpha1.SyncTarget{syncTarget("a", metav1.ConditionTrue, time.Hour)}, []string{"PROBLEM no hub has written to any"}},
		"a hub, not for a": {[]edgev2alpha1.SyncTarget{syncTarget("a", "", 0), ready, away}, []string{"PROBLEM no hub has written to 1 of 3 SyncTargets for minutes: a", "1 of 3 SyncTargets are not ready"}},
	} {
		report := &Report{}
		report.targets(test.syncTargets, now)
		var lines []string
		problems := 0
		for _, finding := range report.Findings {
			lines = append(lines, string(finding.Result)+" "+finding.Message)
			if finding.Result == Problem {
				problems++
			}
		}
		text := strings.Join(lines, "\n")
		if len(lines) != len(test.want) || report.Problems() != problems {
			t.Errorf("%s: it prints\n%s", name, text)
		}
		for _, want := range test.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is missing in\n%s", name, want, text)
			}
		}
	}
}
