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

package crd_test

import (
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/syncmanager/crd"
)

func TestStorePublishesChangesOnly(t *testing.T) {
	var published []string
	var store crd.Store
	store.Changes().Subscribe(t.Context(), func(struct{}) {
		var names []string
		for _, one := range store.All() {
			names = append(names, one.PublishedResource+"/"+string(one.UID)+"/"+one.CRD.Spec.Names.Kind)
		}
		published = append(published, strings.Join(names, " "))
	})
	set := func(name, uid, kind string, created int64) {
		installation := crd.Installation{PublishedResource: name, UID: types.UID(uid), Created: metav1.Unix(created, 0), CRD: &apiextensionsv1.CustomResourceDefinition{}}
		installation.CRD.Spec.Names.Kind = kind
		store.Set(installation)
	}
	set("b", "1", "Widget", 1)
	set("b", "1", "Widget", 1)
	set("a", "2", "Widget", 2)
	set("c", "3", "Widget", 1)
	set("b", "1", "Gadget", 1)
	set("c", "4", "Widget", 3)
	store.Delete("d")
	store.Delete("b")
	store.Delete("b")
	want := []string{
		"b/1/Widget", "b/1/Widget a/2/Widget", "b/1/Widget c/3/Widget a/2/Widget", "b/1/Gadget c/3/Widget a/2/Widget",
		"b/1/Gadget a/2/Widget c/4/Widget", "a/2/Widget c/4/Widget",
	}
	if !slices.Equal(published, want) {
		t.Errorf("want %q\ngot  %q", want, published)
	}
}
