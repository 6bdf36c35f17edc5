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

package objectsync

import (
	"errors"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/conversion"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

func lamps(projected plan.TargetAPI, versions ...string) plan.Resource {
	return plan.Resource{
		PublishedResource:    "lamps",
		GroupVersionResource: schema.GroupVersionResource{Group: "shop", Version: "v1", Resource: "lamps"}, Kind: "Lamp", Namespaced: true,
		Projected: projected, Rules: &plan.Rules{Versions: versions},
	}
}

// Configs may name a target object by any version, not only by the version in which the hub reads it.
func TestVersionsInConfigs(t *testing.T) {
	lights := lamps(plan.TargetAPI{}, "v1", "v1beta1").WithTargetVersion("v1beta1")
	rules := rulesFor(Options{Resource: lights})
	if resource, versions := rules.ConfigResource(lights.TargetAPI()); resource.Version != "v1" || !slices.Equal(versions, lights.TargetVersions()) {
		t.Errorf("got %v, %v", resource, versions)
	}
	other := plan.TargetAPI{GroupVersionResource: schema.GroupVersionResource{Group: "light", Version: "v7", Resource: "lights"}}
	if resource, versions := rules.ConfigResource(other); resource != other.GroupVersionResource || versions != nil {
		t.Errorf("got %v, %v", resource, versions)
	}
}

// Objects are written in the target's and in the mailbox's version of the resource, not in the version of a conversion.
func TestVersionsOfConversions(t *testing.T) {
	names := &conversion.Conversion{
		Upstream:   conversion.Pattern{Group: "shop", Version: "v1", Kind: "Lamp", Name: "here"},
		Downstream: conversion.Pattern{Group: "shop", Version: "v1", Kind: "Lamp", Name: "there"},
	}
	object := func(version, name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "shop/" + version, "kind": "Lamp", "metadata": map[string]any{"name": name, "namespace": "a"}}}
	}
	down, err := transform.Down{}.Name(object("v1", "here"), transform.SyncSpec{Policy: ownership.PolicyDelete, Conversion: names, Version: "v1beta1"})
	if err != nil || down.GVK.Version != "v1beta1" || down.Name != "there" {
		t.Errorf("downsynced as %+v, %v", down, err)
	}
	up, err := transform.Up{Resource: schema.GroupResource{Group: "shop", Resource: "lamps"}, Version: "v1", Kind: "Lamp", Namespaced: true}.
		Name(object("v1beta1", "there"), transform.SyncSpec{Conversion: names})
	if err != nil || up.GVK.Version != "v1" || up.Name != "here" {
		t.Errorf("upsynced as %+v, %v", up, err)
	}
}

func TestRemovedVersion(t *testing.T) {
	const message = "request to convert CR to an invalid group/version: shop/v1beta1"
	for name, test := range map[string]struct {
		err  error
		in   string
		want string
	}{
		"no error":               {nil, "shop/v1", ""},
		"a removed version":      {apierrors.NewInternalError(errors.New(message)), "shop/v1", "shop/v1beta1"},
		"within a longer text":   {apierrors.NewInternalError(errors.New("failed to prune fields: " + message + ".")), "shop/v1", "shop/v1beta1"},
		"another error":          {apierrors.NewInternalError(errors.New("no")), "shop/v1", ""},
		"another kind of error":  {apierrors.NewBadRequest(message), "shop/v1", ""},
		"of another group":       {apierrors.NewInternalError(errors.New(message)), "store/v1", ""},
		"the one that is in use": {apierrors.NewInternalError(errors.New(message)), "shop/v1beta1", ""},
	} {
		in, err := schema.ParseGroupVersion(test.in)
		if err != nil {
			t.Fatal(err)
		}
		if got := removedVersion(test.err, in); got != test.want {
			t.Errorf("%s: want %q, got %q", name, test.want, got)
		}
	}
}
