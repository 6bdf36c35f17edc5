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

package exportbinding

import (
	"slices"
	"testing"

	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
)

func claim(group, resource, identity string, verbs ...string) apisv1alpha2.PermissionClaim {
	if len(verbs) == 0 {
		verbs = []string{"*"}
	}
	return apisv1alpha2.PermissionClaim{GroupResource: apisv1alpha2.GroupResource{Group: group, Resource: resource}, IdentityHash: identity, Verbs: verbs}
}

func decided(claim apisv1alpha2.PermissionClaim, state apisv1alpha2.AcceptablePermissionClaimState, selector apisv1alpha2.PermissionClaimSelector) apisv1alpha2.AcceptablePermissionClaim {
	return apisv1alpha2.AcceptablePermissionClaim{ScopedPermissionClaim: apisv1alpha2.ScopedPermissionClaim{PermissionClaim: claim, Selector: selector}, State: state}
}

func accepted(claim apisv1alpha2.PermissionClaim) apisv1alpha2.AcceptablePermissionClaim {
	return decided(claim, apisv1alpha2.ClaimAccepted, apisv1alpha2.PermissionClaimSelector{MatchAll: true})
}

func TestWithClaims(t *testing.T) {
	labelled := apisv1alpha2.PermissionClaimSelector{}
	labelled.MatchLabels = map[string]string{"a": "b"}
	secrets, widgets, others := claim("", "secrets", ""), claim("example.com", "widgets", "one"), claim("example.com", "widgets", "two")
	rejected := decided(secrets, apisv1alpha2.ClaimRejected, apisv1alpha2.PermissionClaimSelector{MatchAll: true})
	type claims = []apisv1alpha2.AcceptablePermissionClaim
	for name, test := range map[string]struct {
		decided   claims
		requested []apisv1alpha2.PermissionClaim
		want      claims
		limited   []string
	}{
		"none":                    {},
		"all are new":             {nil, []apisv1alpha2.PermissionClaim{secrets, widgets}, claims{accepted(secrets), accepted(widgets)}, nil},
		"one is new":              {claims{accepted(widgets)}, []apisv1alpha2.PermissionClaim{secrets, widgets}, claims{accepted(widgets), accepted(secrets)}, nil},
		"rejected":                {claims{rejected}, []apisv1alpha2.PermissionClaim{secrets}, claims{rejected}, []string{"secrets"}},
		"for some objects":        {claims{decided(widgets, apisv1alpha2.ClaimAccepted, labelled)}, []apisv1alpha2.PermissionClaim{widgets}, claims{decided(widgets, apisv1alpha2.ClaimAccepted, labelled)}, []string{"widgets.example.com"}},
		"for some verbs":          {claims{accepted(claim("", "secrets", "", "get"))}, []apisv1alpha2.PermissionClaim{secrets}, claims{accepted(claim("", "secrets", "", "get"))}, []string{"secrets"}},
		"no longer requested":     {claims{accepted(secrets), accepted(widgets)}, []apisv1alpha2.PermissionClaim{widgets}, claims{accepted(secrets), accepted(widgets)}, nil},
		"now of another provider": {claims{accepted(widgets)}, []apisv1alpha2.PermissionClaim{others}, claims{accepted(others)}, nil},
		"the same name, no group": {claims{accepted(claim("", "widgets", ""))}, []apisv1alpha2.PermissionClaim{widgets}, claims{accepted(claim("", "widgets", "")), accepted(widgets)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(test.decided)
			got := (&Export{}).withClaims(test.decided, test.requested)
			if !apiequality.Semantic.DeepEqual(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if !apiequality.Semantic.DeepEqual(test.decided, before) {
				t.Errorf("the argument was changed to %+v", test.decided)
			}
			if again := (&Export{}).withClaims(got, test.requested); !apiequality.Semantic.DeepEqual(again, got) {
				t.Errorf("a second time it is %+v", again)
			}
			binding := &apisv1alpha2.APIBinding{}
			binding.Spec.PermissionClaims, binding.Status.ExportPermissionClaims = got, test.requested
			if limited := (&Export{}).limitedClaims(binding); !slices.Equal(limited, test.limited) {
				t.Errorf("limited are %q, want %q", limited, test.limited)
			}
		})
	}
}

func TestUnappliedClaims(t *testing.T) {
	secrets, widgets := claim("", "secrets", ""), claim("example.com", "widgets", "one")
	binding := &apisv1alpha2.APIBinding{}
	binding.Status.ExportPermissionClaims = []apisv1alpha2.PermissionClaim{secrets, widgets, claim("", "events", "")}
	binding.Spec.PermissionClaims = []apisv1alpha2.AcceptablePermissionClaim{
		accepted(secrets), accepted(widgets), accepted(claim("", "pods", "")),
		decided(claim("", "events", ""), apisv1alpha2.ClaimRejected, apisv1alpha2.PermissionClaimSelector{MatchAll: true}),
	}
	binding.Status.AppliedPermissionClaims = []apisv1alpha2.ScopedPermissionClaim{{PermissionClaim: secrets}, {PermissionClaim: claim("example.com", "widgets", "two")}}
	if got := unappliedClaims(binding); !slices.Equal(got, []string{"widgets.example.com"}) {
		t.Errorf("unapplied are %q", got)
	}
}

// An export that needs only some objects requests only these, and a user may accept these or all.
func TestClaimsForSomeObjects(t *testing.T) {
	secrets := claim("", "secrets", "")
	export := &Export{Labels: map[apisv1alpha2.GroupResource]map[string]string{secrets.GroupResource: {"a": "b"}}}
	some, fewer := apisv1alpha2.PermissionClaimSelector{}, apisv1alpha2.PermissionClaimSelector{}
	some.MatchLabels, fewer.MatchLabels = map[string]string{"a": "b"}, map[string]string{"a": "b", "c": "d"}
	if got, want := export.withClaims(nil, []apisv1alpha2.PermissionClaim{secrets}), decided(secrets, apisv1alpha2.ClaimAccepted, some); !apiequality.Semantic.DeepEqual(got[0], want) {
		t.Errorf("got %+v, want %+v", got[0], want)
	}
	for name, test := range map[string]struct {
		claim     apisv1alpha2.AcceptablePermissionClaim
		isLimited bool
	}{
		"those that it needs": {decided(secrets, apisv1alpha2.ClaimAccepted, some), false},
		"all":                 {accepted(secrets), false},
		"fewer":               {decided(secrets, apisv1alpha2.ClaimAccepted, fewer), true},
		"none":                {decided(secrets, apisv1alpha2.ClaimRejected, some), true},
	} {
		binding := &apisv1alpha2.APIBinding{}
		binding.Spec.PermissionClaims, binding.Status.ExportPermissionClaims = []apisv1alpha2.AcceptablePermissionClaim{test.claim}, []apisv1alpha2.PermissionClaim{secrets}
		if limited := export.limitedClaims(binding); (len(limited) > 0) != test.isLimited {
			t.Errorf("%s: limited are %q", name, limited)
		}
	}
}
