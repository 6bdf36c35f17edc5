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

package clusterid

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// The ID of a cluster is compared and shown as a name, for any answer, and different IDs stay different.
func FuzzPrintable(f *testing.F) {
	f.Add("2f4a1a34-5a1b-4d7e-8a39-1f6b0d6f7a01", "x")
	f.Add("\x1b[31m", strings.Repeat("a", 65))
	f.Fuzz(func(t *testing.T, one, other string) {
		shown := printable(one)
		if len(shown) > maxLength || len(validation.IsDNS1123Subdomain(shown)) > 0 {
			t.Errorf("%q is shown as %q", one, shown)
		}
		if one != other && shown != other && shown == printable(other) {
			t.Errorf("%q and %q are both %q", one, other, shown)
		}
	})
}

func TestPrintable(t *testing.T) {
	const uid = "6d8f6c3e-3f0e-4a6f-9a4e-6f3a3a1b2c3d"
	if got := printable(uid); got != uid {
		t.Errorf("a UID becomes %s", got)
	}
	for _, odd := range []string{strings.Repeat("a", 5000), strings.Repeat("a", maxLength+1), "\x1b[31mred", "two words", "a\u202eb", "UPPER"} {
		if got := printable(odd); len(got) > maxLength || !strings.HasPrefix(got, "sha256-") || got != printable(odd) || got == printable(odd+"x") {
			t.Errorf("%.20q becomes %s", odd, got)
		}
	}
}
