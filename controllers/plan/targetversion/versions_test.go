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

package targetversion_test

import (
	"strings"
	"testing"

	"github.com/synchub-dev/synchub/controllers/plan/targetversion"
)

func TestChoose(t *testing.T) {
	const silent = "-"
	for name, test := range map[string]struct {
		published, named, served, before string
		want                             targetversion.Choice
	}{
		"the only one":                                  {"v1", "", "v1", "", targetversion.Choice{Version: "v1", Reason: targetversion.Preferred}},
		"the preferred one":                             {"v1 v1beta1", "", "v1beta1 v1", "", targetversion.Choice{Version: "v1", Reason: targetversion.Preferred}},
		"even if the target prefers another one":        {"v1 v1beta1", "", "v2 v1beta1 v1", "v1beta1", targetversion.Choice{Version: "v1", Reason: targetversion.Preferred}},
		"the newest that is served":                     {"v2 v1 v1beta1 v1alpha1", "", "v1alpha1 v1beta1", "", targetversion.Choice{Version: "v1beta1", Reason: targetversion.Newest}},
		"not the one before":                            {"v2 v1 v1beta1", "", "v1beta1 v1", "v1beta1", targetversion.Choice{Version: "v1", Reason: targetversion.Newest}},
		"the one named":                                 {"v1 v1beta1", "v1beta1", "v1 v1beta1", "v1", targetversion.Choice{Version: "v1beta1", Reason: targetversion.Named}},
		"the one named, which is preferred":             {"v1 v1beta1", "v1", "v1beta1", "v1beta1", targetversion.Choice{Version: "v1", Reason: targetversion.Named}},
		"the one named, which is not served":            {"v1 v1beta1", "v1beta1", "v1", "v1", targetversion.Choice{Version: "v1beta1", Reason: targetversion.Named}},
		"one named that is not published":               {"v1 v1beta1", "v3", "v1 v1beta1 v3", "", targetversion.Choice{Version: "v1", Reason: targetversion.Preferred}},
		"none is served":                                {"v1 v1beta1", "", "v2", "", targetversion.Choice{Version: "v1", Reason: targetversion.NotServed}},
		"none is served any more":                       {"v1 v1beta1", "", "", "v1beta1", targetversion.Choice{Version: "v1beta1", Reason: targetversion.NotServed}},
		"no answer":                                     {"v1 v1beta1", "", silent, "", targetversion.Choice{Version: "v1", Reason: targetversion.Preferred}},
		"no answer, with one before":                    {"v1 v1beta1", "", silent, "v1beta1", targetversion.Choice{Version: "v1beta1", Reason: targetversion.Newest}},
		"no answer, with the preferred one before":      {"v1 v1beta1", "", silent, "v1", targetversion.Choice{Version: "v1", Reason: targetversion.Preferred}},
		"no answer, with an unpublished version before": {"v1 v1beta1", "", silent, "v1alpha1", targetversion.Choice{Version: "v1", Reason: targetversion.Preferred}},
	} {
		target := targetversion.Target{Previous: test.before, Known: test.served != silent}
		if target.Known {
			target.Served = strings.Fields(test.served)
		}
		if got := targetversion.Choose(strings.Fields(test.published), test.named, target); got != test.want {
			t.Errorf("%s: want %v, got %v", name, test.want, got)
		}
	}
}
