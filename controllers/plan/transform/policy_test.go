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

package transform_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/synchub-dev/synchub/controllers/plan/conversion"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/test/fixtures"
)

func TestInvalidObjects(t *testing.T) {
	for name, test := range map[string]struct{ source, field, message string }{
		"a token for nobody": {
			"{apiVersion: v1, kind: Secret, metadata: {name: s}, type: kubernetes.io/service-account-token}",
			"metadata.annotations[kubernetes.io/service-account.name]", "ServiceAccount",
		},
		"a token for an empty name": {
			"{apiVersion: v1, kind: Secret, metadata: {name: s, annotations: {kubernetes.io/service-account.name: ''}}, type: kubernetes.io/service-account-token, data: {token: YQ==}}",
			"metadata.annotations[kubernetes.io/service-account.name]", "ServiceAccount",
		},
		"a pull secret of OpenShift": {
			"{apiVersion: v1, kind: Secret, metadata: {name: s, annotations: {openshift.io/token-secret.name: t}}, type: kubernetes.io/dockercfg, data: {.dockercfg: e30=}}",
			"metadata.annotations[openshift.io/token-secret.name]", "pull secret",
		},
		"a pull secret of a later OpenShift": {
			"{apiVersion: v1, kind: Secret, metadata: {name: s, annotations: {openshift.io/internal-registry-auth-token.service-account: robot}}, type: kubernetes.io/dockerconfigjson, data: {.dockerconfigjson: e30=}}",
			"metadata.annotations[openshift.io/internal-registry-auth-token.service-account]", "pull secret",
		},
	} {
		t.Run(name, func(t *testing.T) {
			desired, err := down.Desired(fixtures.Object(t, test.source), transform.SyncSpec{Policy: ownership.PolicyDelete})
			wantInvalid(t, desired, err, test.field, test.message)
		})
	}
}

// The kind of a related object on a target depends on the target's discovery.
func TestTokenSecretsKeepTheirKind(t *testing.T) {
	source := fixtures.Object(t, "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: shop, annotations: {kubernetes.io/service-account.name: robot}}, type: kubernetes.io/service-account-token, data: {token: YQ==}}")
	spec := transform.SyncSpec{Policy: ownership.PolicyDelete, Kind: source.GroupVersionKind()}
	desired, err := down.Desired(source, spec)
	if err != nil || desired.Object.Object["data"] != nil {
		t.Errorf("got %v, %v", desired, err)
	}
	for _, kind := range []string{"Thing", "secret", ""} {
		spec.Kind.Kind = kind
		if kind == "" {
			spec.Conversion = &conversion.Conversion{Upstream: conversion.Pattern{Version: "v1", Kind: "Secret"}, Downstream: conversion.Pattern{Version: "v1", Kind: "ConfigMap"}}
		}
		desired, err := down.Desired(source, spec)
		wantInvalid(t, desired, err, "type", "token")
	}
}

func wantInvalid(t *testing.T, desired *transform.Desired, err error, field, message string) {
	t.Helper()
	var refused *transform.InvalidObjectError
	if !errors.As(err, &refused) || desired != nil {
		t.Fatalf("want a refusal, got %v, %v", desired, err)
	}
	if refused.Field != field || !strings.Contains(refused.Message, message) {
		t.Errorf("want %s and %q, got %+v", field, message, refused)
	}
	if !strings.HasPrefix(err.Error(), field+": ") {
		t.Errorf("the message does not name the field: %v", err)
	}
}

func TestOverwriteAnnotation(t *testing.T) {
	source := fixtures.Object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}}")
	for value, createOnly := range map[string]bool{"false": true, "true": false, "": false, "False": false, "no": false} {
		source.SetAnnotations(map[string]string{ownership.OverwriteAnnotation: value})
		for _, policy := range []ownership.Policy{ownership.PolicyDelete, ownership.PolicyOrphan, ownership.PolicyCreateOnly} {
			desired, err := down.Desired(source, transform.SyncSpec{Policy: policy})
			if err != nil {
				t.Fatal(err)
			}
			want := policy
			if createOnly {
				want = ownership.PolicyCreateOnly
			}
			if desired.Mark.Policy != want || desired.Object.GetAnnotations()[ownership.MarkAnnotation] != down.Owner.Seal(desired.Mark) {
				t.Errorf("%q with %s: want %s, got %s", value, policy, want, desired.Mark.Policy)
			}
			if got, ok := desired.Object.GetAnnotations()[ownership.OverwriteAnnotation]; !ok || got != value {
				t.Errorf("the annotation became %q", got)
			}
		}
	}
}
