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

package kubeconfig_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/targets/kubeconfig"
)

func secret(allowed string) *corev1.Secret {
	made := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s"}}
	if allowed != "" {
		made.Annotations = map[string]string{"else": "stays", edgev2alpha1.AnnotationAllowedSyncTargets: allowed}
	}
	return made
}

func TestAllow(t *testing.T) {
	for name, test := range map[string]struct {
		annotation string
		allowed    bool
		// then is the annotation once it is allowed.
		then, command string
	}{
		"nobody": {
			then: "florin/one", command: "`kubectl annotate secret s --namespace default synchub.dev/allowed-sync-targets=florin/one`",
		},
		"this one":           {annotation: "florin/one", allowed: true, then: "florin/one"},
		"this one, by name":  {annotation: "florin", allowed: true, then: "florin"},
		"one of two entries": {annotation: "guilder, florin/one", allowed: true, then: "guilder, florin/one"},
		"a deleted one":      {annotation: "florin/zero", then: "florin/one", command: "`kubectl annotate secret s --namespace default --overwrite synchub.dev/allowed-sync-targets=florin/one`"},
		"this name's prefix": {annotation: "flo", then: "flo,florin/one"},
		"a longer name":      {annotation: "florin.two", then: "florin.two,florin/one"},
		"another with this one's UID": {
			annotation: "guilder/one", then: "guilder/one,florin/one",
			command: "`kubectl annotate secret s --namespace default --overwrite synchub.dev/allowed-sync-targets=EXISTING,florin/one`, with the existing entries of the annotation in place of EXISTING",
		},
		"a UID that is empty": {annotation: "florin/", then: "florin/one"},
		"a wildcard":          {annotation: "*", then: "*,florin/one"},
		"nothing but commas":  {annotation: " ,, ", then: "florin/one"},
	} {
		t.Run(name, func(t *testing.T) {
			subject := secret(test.annotation)
			if got := kubeconfig.Allows(subject, "florin", "one"); got != test.allowed {
				t.Errorf("allowed: %v", got)
			}
			if got := kubeconfig.AllowCommand(subject, "florin", "one"); test.command != "" && got != test.command {
				t.Errorf("the command is %s", got)
			}
			kubeconfig.Allow(subject, "florin", "one")
			if got := subject.Annotations[edgev2alpha1.AnnotationAllowedSyncTargets]; got != test.then {
				t.Errorf("it becomes %q, not %q", got, test.then)
			}
			if !kubeconfig.Allows(subject, "florin", "one") || !kubeconfig.HasEntryFor(subject, "florin") {
				t.Error("it is not allowed then")
			}
			if test.annotation != "" && subject.Annotations["else"] != "stays" {
				t.Error("another annotation was lost")
			}
		})
	}
}

// A SyncTarget without a UID, such as one of a manifest, is allowed by its name alone.
func TestAllowWithoutAUID(t *testing.T) {
	pinned := secret("florin/")
	if kubeconfig.Allows(pinned, "florin", "") || kubeconfig.Allows(secret("florin/one"), "florin", "") {
		t.Error("an entry with a UID allows a SyncTarget without a UID")
	}
	kubeconfig.Allow(pinned, "florin", "")
	if got := pinned.Annotations[edgev2alpha1.AnnotationAllowedSyncTargets]; got != "florin" {
		t.Errorf("it becomes %q", got)
	}
}

// Allowing one SyncTarget changes nothing for another, with any annotation.
func FuzzAllow(f *testing.F) {
	for _, annotation := range []string{"", "florin", "florin/one,guilder/two", "guilder", " ,, ", "florin/", "/", "guilder/two/three,*"} {
		f.Add(annotation)
	}
	f.Fuzz(func(t *testing.T, annotation string) {
		before, after := secret(annotation), secret(annotation)
		kubeconfig.Allow(after, "florin", "one")
		if !kubeconfig.Allows(after, "florin", "one") || !kubeconfig.HasEntryFor(after, "florin") {
			t.Errorf("%q became %q", annotation, after.Annotations)
		}
		if kubeconfig.Allows(before, "guilder", "two") != kubeconfig.Allows(after, "guilder", "two") ||
			kubeconfig.HasEntriesForOthers(before, "florin") != kubeconfig.HasEntriesForOthers(after, "florin") {
			t.Errorf("the access of other SyncTargets changed: %q became %q", annotation, after.Annotations)
		}
	})
}
