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

package publishedresource_test

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/publishedresource"
)

func TestCRDStoreNotifiesOfChangesOnly(t *testing.T) {
	var notified []string
	definitions := publishedresource.NewCRDStore(func(all []publishedresource.CRDInstallation) {
		var names []string
		for _, one := range all {
			names = append(names, one.PublishedResource+"/"+string(one.UID)+"/"+one.CRD.Spec.Names.Kind)
		}
		notified = append(notified, strings.Join(names, " "))
	})
	set := func(name, uid, kind string, created int64) {
		definition := publishedresource.CRDInstallation{PublishedResource: name, UID: types.UID(uid), Created: metav1.Unix(created, 0), CRD: widgets()}
		definition.CRD.Spec.Names.Kind = kind
		definitions.Set(definition)
	}
	set("b", "1", "Widget", 1)
	set("b", "1", "Widget", 1)
	set("a", "2", "Widget", 2)
	set("c", "3", "Widget", 1)
	set("b", "1", "Gadget", 1)
	set("c", "4", "Widget", 3)
	definitions.Delete("d")
	definitions.Delete("b")
	definitions.Delete("b")
	want := []string{
		"b/1/Widget", "b/1/Widget a/2/Widget", "b/1/Widget c/3/Widget a/2/Widget", "b/1/Gadget c/3/Widget a/2/Widget",
		"b/1/Gadget a/2/Widget c/4/Widget", "a/2/Widget c/4/Widget",
	}
	if !slices.Equal(notified, want) {
		t.Errorf("want %q\ngot  %q", want, notified)
	}
}
