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

package conversion_test

import (
	"math/rand/v2"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/conversion"
)

// check applies a conversion to a name on each side.
func check(t *testing.T, converts conversion.Conversion, name conversion.Name) (matches bool) {
	t.Helper()
	type direction = func(conversion.Name) (conversion.Name, bool)
	for side, directions := range map[string][2]direction{"down": {converts.Down, converts.Up}, "up": {converts.Up, converts.Down}} {
		converted, ok := directions[0](name)
		if !ok {
			if converted != (conversion.Name{}) {
				t.Errorf("%s: %+v does not match %+v, but returns %+v", side, converts, name, converted)
			}
			continue
		}
		matches = true
		if back, ok := directions[1](converted); !ok || back != name {
			t.Errorf("%s: %+v makes %+v of %+v, and of that %+v, %v", side, converts, converted, name, back, ok)
		}
		if converted.GVK.Kind == "" || converted.GVK.Kind == "*" || converted.Name == "*" {
			t.Errorf("%s: %+v makes %+v of %+v: not a valid name", side, converts, converted, name)
		}
		if converted.Namespace != name.Namespace {
			t.Errorf("%s: %+v moves %+v to namespace %q", side, converts, name, converted.Namespace)
		}
	}
	return matches
}

// A name that is converted down is converted up to itself, for valid conversions and for results of New.
func TestOneToOne(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0)) //nolint:gosec // the same conversions in every run
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	resource := func() edgev2alpha1.EdgeSyncConfigResource {
		return edgev2alpha1.EdgeSyncConfigResource{
			Group: pick("", "g"), Version: pick("", "", "*", "v1", "v2"), Kind: pick("", "*", "K", "K", "K", "K", "L"), Namespace: pick("", "", "*", "a", "b"), Name: pick("", "", "*", "x", "y"),
		}
	}
	made, byHand, matched := 0, 0, 0
	for range 20000 {
		spec := edgev2alpha1.Conversion{Upstream: resource(), Downstream: resource()}
		var name conversion.Name
		name.GVK = schema.GroupVersionKind{Group: pick("", "g"), Version: pick("", "v1", "v1", "v2"), Kind: pick("", "*", "K", "K", "K", "K", "L")}
		name.Namespace, name.Name = pick("", "a", "b"), pick("", "*", "x", "x", "y")
		raw := conversion.Conversion{
			Upstream:   conversion.Pattern{Group: spec.Upstream.Group, Version: spec.Upstream.Version, Kind: spec.Upstream.Kind, Namespace: spec.Upstream.Namespace, Name: spec.Upstream.Name},
			Downstream: conversion.Pattern{Group: spec.Downstream.Group, Version: spec.Downstream.Version, Kind: spec.Downstream.Kind, Namespace: spec.Downstream.Namespace, Name: spec.Downstream.Name},
		}
		byHand++
		if check(t, raw, name) {
			matched++
		}
		if converts, err := conversion.New(spec); err == nil {
			made++
			rawDown, rawOK := raw.Down(name)
			if down, ok := converts.Down(name); ok != rawOK || down != rawDown {
				t.Errorf("%+v means something else than %+v", converts, raw)
			}
			check(t, converts, name)
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	if made < byHand/20 || matched < byHand/20 || matched > byHand/2 {
		t.Errorf("of %d conversions %d were valid, and %d matched a name: too few cases", byHand, made, matched)
	}
}

func FuzzConversion(f *testing.F) {
	f.Add("a.io", "v1", "K", "", "x", "b.io", "v1", "L", "", "y", "n", true)
	f.Add("", "", "*", "*", "*", "b.io", "*", "*", "", "", "n", false)
	f.Add("", "*", "K", "n", "x", "", "v2", "K", "n", "*", "", true)
	f.Fuzz(func(t *testing.T, upGroup, upVersion, upKind, upNamespace, upName, downGroup, downVersion, downKind, downNamespace, downName, other string, same bool) {
		spec := edgev2alpha1.Conversion{
			Upstream:   edgev2alpha1.EdgeSyncConfigResource{Group: upGroup, Version: upVersion, Kind: upKind, Namespace: upNamespace, Name: upName},
			Downstream: edgev2alpha1.EdgeSyncConfigResource{Group: downGroup, Version: downVersion, Kind: downKind, Namespace: downNamespace, Name: downName},
		}
		name := conversion.Name{GVK: schema.GroupVersionKind{Group: upGroup, Version: upVersion, Kind: upKind}, Namespace: upNamespace, Name: upName}
		if !same {
			name.Name, name.GVK.Version = other, other
		}
		check(t, conversion.Conversion{
			Upstream:   conversion.Pattern{Group: upGroup, Version: upVersion, Kind: upKind, Namespace: upNamespace, Name: upName},
			Downstream: conversion.Pattern{Group: downGroup, Version: downVersion, Kind: downKind, Namespace: downNamespace, Name: downName},
		}, name)
		if converts, err := conversion.New(spec); err == nil {
			check(t, converts, name)
		}
	})
}
