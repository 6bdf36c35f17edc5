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
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/plan/conversion"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/test/fixtures"
)

// conversions are pairs of names on the two sides, without namespaces, which never change.
var conversions = map[string]struct {
	names            conversion.Conversion
	mailbox, target  string
	mailboxResource  schema.GroupResource
	versionInMailbox string
}{
	"the name": {
		names:   between(conversion.Pattern{Kind: "ConfigMap", Name: "up"}, conversion.Pattern{Kind: "ConfigMap", Name: "down"}),
		mailbox: "{apiVersion: v1, kind: ConfigMap, metadata: {name: up, namespace: shop}, data: {a: b}}",
		target:  "{apiVersion: v1, kind: ConfigMap, metadata: {name: down, namespace: shop}, data: {a: b}}",
	},
	"the group and the kind, for all names": {
		names:   between(conversion.Pattern{Group: "projected.example", Kind: "Workload"}, conversion.Pattern{Group: "apps", Kind: "Deployment"}),
		mailbox: "{apiVersion: projected.example/v1, kind: Workload, metadata: {name: web, namespace: shop}, spec: {replicas: 1}}",
		target:  "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {replicas: 1}}",
	},
	"to the core group": {
		names:   between(conversion.Pattern{Group: "core.example", Version: "v1beta1", Kind: "Service"}, conversion.Pattern{Version: "v1", Kind: "Service"}),
		mailbox: "{apiVersion: core.example/v1beta1, kind: Service, metadata: {name: web, namespace: shop}, spec: {a: b}}",
		target:  "{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {a: b}}",
	},
	"the version": {
		names:   between(conversion.Pattern{Group: "example.com", Version: "v1", Kind: "Any"}, conversion.Pattern{Group: "example.com", Version: "v2", Kind: "Any"}),
		mailbox: "{apiVersion: example.com/v1, kind: Any, metadata: {name: a}}",
		target:  "{apiVersion: example.com/v2, kind: Any, metadata: {name: a}}",
	},
	"a definition": {
		names: between(conversion.Pattern{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "tests.up.example.com"},
			conversion.Pattern{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "probes.down.example.org"}),
		mailbox: "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: tests.up.example.com}, spec: {group: up.example.com, names: {plural: tests, kind: Test, singular: test, shortNames: [t]}, scope: Cluster}}",
		target:  "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: probes.down.example.org}, spec: {group: down.example.org, names: {plural: probes, kind: Test, singular: test, shortNames: [t]}, scope: Cluster}}",
	},
	"a definition that keeps its name": {
		names:   between(conversion.Pattern{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}, conversion.Pattern{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}),
		mailbox: "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a.example.com}, spec: {group: odd, names: {plural: odd}}}",
		target:  "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a.example.com}, spec: {group: odd, names: {plural: odd}}}",
	},
	"another kind with a spec like a definition's": {
		names:   between(conversion.Pattern{Group: "example.com", Kind: "CustomResourceDefinition", Name: "a.b"}, conversion.Pattern{Group: "example.com", Kind: "CustomResourceDefinition", Name: "c.d"}),
		mailbox: "{apiVersion: example.com/v1, kind: CustomResourceDefinition, metadata: {name: a.b}, spec: {group: b, names: {plural: a}}}",
		target:  "{apiVersion: example.com/v1, kind: CustomResourceDefinition, metadata: {name: c.d}, spec: {group: b, names: {plural: a}}}",
	},
}

func between(up, down conversion.Pattern) conversion.Conversion {
	return conversion.Conversion{Upstream: up, Downstream: down}
}

func TestConversions(t *testing.T) {
	for name, test := range conversions {
		t.Run(name, func(t *testing.T) {
			mailbox, target := fixtures.Object(t, test.mailbox), fixtures.Object(t, test.target)
			mailbox.SetUID("mailbox-uid")
			desired, err := down.Desired(mailbox, transform.SyncSpec{Policy: ownership.PolicyDelete, Conversion: &test.names})
			if err != nil {
				t.Fatal(err)
			}
			if got := unmarked(t, desired); !reflect.DeepEqual(got, target.Object) {
				t.Errorf("down: want %v\ngot %v", target.Object, got)
			}
			if want := transform.SelfOf(target); desired.Mark.Self != want {
				t.Errorf("down: want self %+v, got %+v", want, desired.Mark.Self)
			}
			wantSource := ownership.Source{Group: down.Resource.Group, Resource: down.Resource.Resource, Namespace: mailbox.GetNamespace(), Name: mailbox.GetName(), UID: "mailbox-uid"}
			if desired.Mark.Source != wantSource {
				t.Errorf("down: want source %+v, got %+v", wantSource, desired.Mark.Source)
			}
			if _, err := down.Owner.Verify(desired.Object.GetAnnotations(), transform.SelfOf(desired.Object)); err != nil {
				t.Errorf("down: the converted object's mark does not verify: %v", err)
			}

			target.SetUID("target-uid")
			mailbox.SetUID("")
			upsynced, err := upFor(mailbox).Desired(target, targetResource, transform.SyncSpec{Policy: ownership.PolicyDelete, Conversion: &test.names})
			if err != nil {
				t.Fatal(err)
			}
			if got := unmarked(t, upsynced); !reflect.DeepEqual(got, withoutUID(mailbox.Object)) {
				t.Errorf("up: want %v\ngot %v", mailbox.Object, got)
			}
			if want := transform.SelfOf(mailbox); upsynced.Mark.Self != want {
				t.Errorf("up: want self %+v, got %+v", want, upsynced.Mark.Self)
			}
			wantSource = ownership.Source{Group: targetResource.Group, Resource: targetResource.Resource, Namespace: target.GetNamespace(), Name: target.GetName(), UID: "target-uid"}
			if upsynced.Mark.Source != wantSource {
				t.Errorf("up: want source %+v, got %+v", wantSource, upsynced.Mark.Source)
			}
		})
	}
}

// The rules for Secrets and Namespaces apply to the kind on the target.
func TestConvertedKindsAreTheTargets(t *testing.T) {
	toSecret := between(conversion.Pattern{Group: "example.com", Kind: "Vault"}, conversion.Pattern{Version: "v1", Kind: "Secret"})
	vault := fixtures.Object(t, "{apiVersion: example.com/v1, kind: Vault, metadata: {name: s, namespace: shop}, stringData: {a: b}}")
	desired, err := down.Desired(vault, transform.SyncSpec{Policy: ownership.PolicyDelete, Conversion: &toSecret})
	if err != nil {
		t.Fatal(err)
	}
	if want := fixtures.Object(t, "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: shop}, data: {a: Yg==}}").Object; !reflect.DeepEqual(unmarked(t, desired), want) {
		t.Errorf("want %v, got %v", want, desired.Object)
	}
	vault.Object["type"] = "kubernetes.io/service-account-token"
	desired, err = down.Desired(vault, transform.SyncSpec{Policy: ownership.PolicyDelete, Conversion: &toSecret})
	wantInvalid(t, desired, err, "metadata.annotations[kubernetes.io/service-account.name]", "ServiceAccount")
}

func TestCRDOfAnImpossibleName(t *testing.T) {
	source := fixtures.Object(t, "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a.example.com}, spec: {group: example.com, names: {plural: a}}}")
	for _, name := range []string{"nodot", ".example.com", "a."} {
		names := between(conversion.Pattern{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "a.example.com"},
			conversion.Pattern{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: name})
		desired, err := down.Desired(source, transform.SyncSpec{Policy: ownership.PolicyDelete, Conversion: &names})
		wantInvalid(t, desired, err, "metadata.name", name)
	}
	odd := fixtures.Object(t, "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a.example.com}, spec: [x]}")
	names := between(conversion.Pattern{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "a.example.com"},
		conversion.Pattern{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "b.example.com"})
	for _, spec := range []any{[]any{"x"}, "x", map[string]any{"names": "x"}} {
		odd.Object["spec"] = spec
		if _, err := down.Desired(odd, transform.SyncSpec{Policy: ownership.PolicyDelete, Conversion: &names}); err != nil {
			t.Errorf("%v is for the API server to judge: %v", spec, err)
		}
	}
}

// An object that a conversion does not match is an error: an object of the same name may belong to another client.
func TestConversionOfAnotherObject(t *testing.T) {
	names := between(conversion.Pattern{Kind: "ConfigMap", Name: "one"}, conversion.Pattern{Kind: "ConfigMap", Name: "two"})
	other := fixtures.Object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: other, namespace: shop}}")
	if desired, err := down.Desired(other, transform.SyncSpec{Policy: ownership.PolicyDelete, Conversion: &names}); err == nil || desired != nil {
		t.Errorf("down: got %v, %v", desired, err)
	}
	if desired, err := upFor(other).Desired(other, targetResource, transform.SyncSpec{Policy: ownership.PolicyDelete, Conversion: &names}); err == nil || desired != nil {
		t.Errorf("up: got %v, %v", desired, err)
	}
	// A conversion to another kind than the mailbox resource's.
	target := fixtures.Object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: two, namespace: shop}}")
	secrets := transform.Up{Owner: down.Owner, Mailbox: down.Mailbox, Resource: schema.GroupResource{Resource: "secrets"}, Version: "v1", Kind: "Secret", Hasher: down.Hasher}
	if desired, err := secrets.Desired(target, targetResource, transform.SyncSpec{Policy: ownership.PolicyDelete, Conversion: &names}); err == nil || desired != nil {
		t.Errorf("another kind: got %v, %v", desired, err)
	}
}

// A changed conversion changes the hash.
func TestHashFollowsTheConversion(t *testing.T) {
	source := fixtures.Object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: shop}}")
	seen := map[string]string{desiredFor(t, source).Mark.Hash: "none"}
	for _, name := range []string{"two", "three"} {
		names := between(conversion.Pattern{Kind: "ConfigMap", Name: "one"}, conversion.Pattern{Kind: "ConfigMap", Name: name})
		desired, err := down.Desired(source, transform.SyncSpec{Policy: ownership.PolicyDelete, Conversion: &names})
		if err != nil {
			t.Fatal(err)
		}
		if other, taken := seen[desired.Mark.Hash]; taken {
			t.Errorf("%s has the hash of %s", name, other)
		}
		seen[desired.Mark.Hash] = name
	}
}
