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

package rollout

import (
	"bytes"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
)

func TestRolloutProgress(t *testing.T) {
	t.Parallel()
	is := func(kind, status, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: reason, Message: "as it is."}
	}
	ready, healthy := is("Ready", "True", rules.ReasonInSync), is("Healthy", "True", rules.ReasonCurrent)
	for name, c := range map[string]struct {
		conditions   []metav1.Condition
		generation   int32
		isUnobserved bool
		done         bool
		line, err    string
	}{
		"of another generation":   {[]metav1.Condition{is("RolledOut", "True", rules.ReasonComplete)}, 1, false, false, "see the objects", ""},
		"of other objects":        {[]metav1.Condition{is("RolledOut", "True", rules.ReasonComplete)}, 2, true, false, "see the objects", ""},
		"complete":                {[]metav1.Condition{is("RolledOut", "True", rules.ReasonComplete)}, 2, false, true, "is rolled out", ""},
		"on its way":              {[]metav1.Condition{is("RolledOut", "False", rules.ReasonProgressing)}, 2, false, false, "Waiting for the rollout", ""},
		"paused":                  {[]metav1.Condition{is("RolledOut", "False", rules.ReasonPaused)}, 2, false, false, "not rolled out", "Paused: as it is."},
		"stopped":                 {[]metav1.Condition{is("RolledOut", "False", rules.ReasonStopped)}, 2, false, false, "not rolled out", "Stopped: as it is."},
		"everywhere at once":      {[]metav1.Condition{ready, healthy}, 2, false, true, "is rolled out", ""},
		"without any health":      {[]metav1.Condition{ready}, 2, false, false, "whether shop is Healthy", ""},
		"not everywhere yet":      {[]metav1.Condition{is("Ready", "False", rules.ReasonSyncing), healthy}, 2, false, false, "Waiting for the rollout", ""},
		"not healthy yet":         {[]metav1.Condition{ready, is("Healthy", "False", rules.ReasonInProgress)}, 2, false, false, "Waiting for the rollout", ""},
		"refused somewhere":       {[]metav1.Condition{is("Ready", "False", rules.ReasonObjectsFailed)}, 2, false, false, "not rolled out", "ObjectsFailed"},
		"unhealthy somewhere":     {[]metav1.Condition{ready, is("Healthy", "False", rules.ReasonUnhealthy)}, 2, false, false, "not rolled out", "Unhealthy"},
		"without any destination": {[]metav1.Condition{is("Ready", "False", rules.ReasonNoLocation)}, 2, false, false, "not rolled out", "NoLocation"},
	} {
		of := &edgev2alpha1.EdgePlacement{ObjectMeta: metav1.ObjectMeta{Name: "shop", Generation: 2}}
		of.Status = edgev2alpha1.EdgePlacementStatus{SpecGeneration: c.generation, Selected: 1, ObservedObjects: "1-a", Conditions: c.conditions}
		fingerprint := "1-a"
		if c.isUnobserved {
			fingerprint = "1-b"
		}
		line, done, err := Progress(of, 1, fingerprint)
		if done != c.done || !strings.Contains(line, c.line) {
			t.Errorf("%s: %t, %s", name, done, line)
		}
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestProgressIsSanitized(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	follower := &follower{out: &out}
	follower.show("ok\x1b[2J\r\nReady:  True")
	if text := out.String(); !strings.Contains(text, "ok") || strings.ContainsAny(text, "\x1b\r") || strings.Contains(text, "\nReady") {
		t.Errorf("it is shown as %q", text)
	}
}
