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

package claimlabels

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestAreOutdated(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	forbidden := func(text string) error { return apierrors.NewForbidden(secrets, "florin-kubeconfig", errors.New(text)) }
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"a claim was accepted":             {forbidden(`metadata.labels[claimed.internal.apis.kcp.io/akvMfd]: Invalid value: "": must be "ctwrJR"`), true},
		"a claim was rejected":             {forbidden(`metadata.labels[claimed.internal.apis.kcp.io/akvMfd]: Forbidden: must not be set`), true},
		"the caller adds context":          {fmt.Errorf("write the Secret: %w", forbidden(`metadata.labels[claimed.internal.apis.kcp.io/akvMfd]: Invalid value: "": must be "ctwrJR"`)), true},
		"a permission is missing":          {forbidden(`User "operator" cannot create resource "secrets"`), false},
		"it is a conflict":                 {apierrors.NewConflict(secrets, "florin-kubeconfig", errors.New("claimed.internal.apis.kcp.io/akvMfd")), false},
		"it is no answer of an API server": {errors.New("claimed.internal.apis.kcp.io/akvMfd"), false},
		"there is no error":                {nil, false},
	} {
		if got := AreOutdated(test.err); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
