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

package check

import (
	"context"
	_ "embed"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
)

// shownFields lists the text fields that a dump shows, by kind. Think of what users can write there before you add one.
//
//go:embed testdata/shown-fields.txt
var shownFields string

// planter gives each text in an object a value that names its field.
type planter struct{ planted []string }

// plant fills a value, whose field has the path.
func (p *planter) plant(value reflect.Value, path string) {
	text := "planted<" + path + ">"
	switch of := value.Addr().Interface().(type) {
	case *metav1.Time:
		*of = metav1.Unix(1, 0)
		return
	case *metav1.MicroTime:
		*of = metav1.NewMicroTime(time.Unix(1, 0))
		return
	case *resource.Quantity:
		*of = resource.MustParse("1")
		return
	case *metav1.ObjectMeta:
		p.plantFields(value, "metadata")
		return
	case *metav1.LabelSelector:
		of.MatchLabels = map[string]string{text: text}
		p.planted = append(p.planted, path)
		return
	case *metav1.FieldsV1:
		of.SetRawBytes([]byte(`{}`))
		return
	case *intstr.IntOrString:
		*of = intstr.FromString(text)
		p.planted = append(p.planted, path)
		return
	case *runtime.RawExtension:
		of.Raw = fmt.Appendf(nil, "{%q: %q}", text, text)
		p.planted = append(p.planted, path)
		return
	case *apiextensionsv1.JSON:
		of.Raw = fmt.Appendf(nil, "%q", text)
		p.planted = append(p.planted, path)
		return
	}
	switch value.Kind() {
	case reflect.String:
		value.SetString(text)
		p.planted = append(p.planted, path)
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		p.plant(value.Elem(), path)
	case reflect.Slice:
		value.Set(reflect.MakeSlice(value.Type(), 1, 1))
		p.plant(value.Index(0), path)
	case reflect.Map:
		key, element := reflect.New(value.Type().Key()).Elem(), reflect.New(value.Type().Elem()).Elem()
		p.plant(key, path+".(key)")
		p.plant(element, path)
		value.Set(reflect.MakeMap(value.Type()))
		value.SetMapIndex(key, element)
	case reflect.Struct:
		p.plantFields(value, path)
	default:
	}
}

func (p *planter) plantFields(value reflect.Value, path string) {
	for i := range value.NumField() {
		field := value.Type().Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case !field.IsExported() || name == "-":
		case name == "" && (field.Anonymous || options == "inline"):
			p.plant(value.Field(i), path)
		default:
			p.plant(value.Field(i), path+"."+name)
		}
	}
}

// plantedReader lists one object of each kind, with a text in each field.
type plantedReader struct {
	client.Reader
	planter
}

func (r *plantedReader) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	items := reflect.ValueOf(list).Elem().FieldByName("Items")
	one := reflect.New(items.Type().Elem())
	r.plant(one.Elem(), strings.TrimSuffix(reflect.TypeOf(list).Elem().Name(), "List"))
	object := one.Interface().(client.Object)
	if event, ok := object.(*corev1.Event); ok {
		event.InvolvedObject.Kind, event.InvolvedObject.Name = "Lease", leaseName
	}
	return meta.SetList(list, []runtime.Object{object})
}

var plantedText = regexp.MustCompile(`planted<([^>]*)>`)

// A field that an API gets later is in no dump until somebody has decided about it.
func TestDumpShowsKnownFieldsOnly(t *testing.T) {
	files, from := newTestDump(t), &plantedReader{}
	for _, list := range []client.ObjectList{
		&apisv1alpha2.APIBindingList{}, &edgev2alpha1.SyncTargetList{}, &edgev2alpha1.LocationList{}, &edgev2alpha1.EdgePlacementList{}, &edgev2alpha1.SinglePlacementSliceList{},
		&edgev2alpha1.SyncerConfigList{}, &edgev2alpha1.EdgeSyncConfigList{}, &synchubv1alpha1.PublishedResourceList{}, &appsv1.DeploymentList{}, &corev1.PodList{}, &corev1.EventList{},
	} {
		if err := files.list(t.Context(), reflect.TypeOf(list).Elem().Name(), from, list, nil); err != nil {
			t.Fatal(err)
		}
	}
	shown := map[string]bool{}
	for _, content := range written(t, files) {
		for _, found := range plantedText.FindAllStringSubmatch(content, -1) {
			shown[found[1]] = true
		}
	}
	known := strings.Fields(shownFields)
	for _, field := range slices.Sorted(maps.Keys(shown)) {
		if !slices.Contains(known, field) {
			t.Errorf("a dump shows %s: hide it, or add it to testdata/shown-fields.txt", field)
		}
	}
	for _, field := range known {
		if !shown[field] {
			t.Errorf("no dump shows %s: remove it from testdata/shown-fields.txt", field)
		}
	}
	if len(from.planted) < 2*len(known) {
		t.Errorf("only %d texts are planted", len(from.planted))
	}
}
