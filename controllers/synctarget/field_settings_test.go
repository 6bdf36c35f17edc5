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

package synctarget

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
)

// setting is a value in which exactly one field is set.
type setting struct {
	// path is the path of the field, as a user would write it; [] stands for an item of a list.
	path  string
	value reflect.Value
}

// String describes the setting in messages.
func (s setting) String() string {
	text, _ := json.Marshal(s.value.Interface())
	return fmt.Sprintf("%s (%s)", s.path, text)
}

// settings returns, for each leaf below a type, the values of the type with only that leaf set. The leaf
// differs from zero and from its default; an enum gets each of its other values. schema is the schema in the
// type's generated CRD.
func settings(t *testing.T, path string, goType reflect.Type, schema apiextensionsv1.JSONSchemaProps) []setting {
	t.Helper()
	switch goType {
	case reflect.TypeFor[metav1.Time]():
		return []setting{{path, reflect.ValueOf(metav1.NewTime(time.Unix(1, 0).UTC()))}}
	case reflect.TypeFor[resource.Quantity]():
		return []setting{{path, reflect.ValueOf(resource.MustParse("1"))}}
	case reflect.TypeFor[apiextensionsv1.JSON]():
		return []setting{{path, reflect.ValueOf(apiextensionsv1.JSON{Raw: []byte(`{"a": 1}`)})}}
	}
	wrap := func(inner []setting, in func(reflect.Value) reflect.Value) (outer []setting) {
		for _, setting := range inner {
			setting.value = in(setting.value)
			outer = append(outer, setting)
		}
		return outer
	}
	switch goType.Kind() {
	case reflect.Pointer:
		inner := settings(t, path, goType.Elem(), schema)
		if goType.Elem().Kind() == reflect.Bool && string(defaultOf(schema)) != "false" {
			// A pointer to false differs from an absent field.
			inner = append(inner, setting{path, reflect.Zero(goType.Elem())})
		}
		return wrap(inner, func(value reflect.Value) reflect.Value {
			pointer := reflect.New(goType.Elem())
			pointer.Elem().Set(value)
			return pointer
		})
	case reflect.Struct:
		return structSettings(t, path, goType, schema)
	case reflect.Slice:
		if schema.Items == nil || schema.Items.Schema == nil {
			t.Fatalf("%s: the schema does not describe the items of the list", path)
		}
		return wrap(settings(t, path+"[]", goType.Elem(), *schema.Items.Schema), func(value reflect.Value) reflect.Value {
			return reflect.Append(reflect.MakeSlice(goType, 0, 1), value)
		})
	case reflect.Map:
		if schema.AdditionalProperties == nil || schema.AdditionalProperties.Schema == nil {
			t.Fatalf("%s: the schema does not describe the values of the map", path)
		}
		return wrap(settings(t, path, goType.Elem(), *schema.AdditionalProperties.Schema), func(value reflect.Value) reflect.Value {
			entries := reflect.MakeMap(goType)
			entries.SetMapIndex(reflect.ValueOf("key").Convert(goType.Key()), value)
			return entries
		})
	default:
		return scalarSettings(t, path, goType, schema)
	}
}

func structSettings(t *testing.T, path string, goType reflect.Type, schema apiextensionsv1.JSONSchemaProps) []setting {
	t.Helper()
	if goType.NumField() == 0 {
		return []setting{{path, reflect.Zero(goType)}}
	}
	var all []setting
	for i := range goType.NumField() {
		field := goType.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		fieldPath, fieldSchema := path+"."+name, schema.Properties[name]
		switch {
		case options == "inline":
			fieldPath, fieldSchema = path, schema
		case fieldSchema.Type == "" && !fieldSchema.XIntOrString && (fieldSchema.XPreserveUnknownFields == nil || !*fieldSchema.XPreserveUnknownFields):
			t.Fatalf("%s is not in the generated schema", fieldPath)
		}
		for _, inner := range settings(t, fieldPath, field.Type, fieldSchema) {
			outer := reflect.New(goType).Elem()
			outer.Field(i).Set(inner.value)
			all = append(all, setting{inner.path, outer})
		}
	}
	return all
}

func scalarSettings(t *testing.T, path string, goType reflect.Type, schema apiextensionsv1.JSONSchemaProps) []setting {
	t.Helper()
	var values []string
	switch {
	case len(schema.Enum) > 0:
		for _, value := range schema.Enum {
			values = append(values, string(value.Raw))
		}
	case goType.Kind() == reflect.Bool:
		values = []string{"true"}
	case goType.Kind() == reflect.String:
		values = []string{`"x"`}
	case goType.Kind() == reflect.Int32, goType.Kind() == reflect.Int64:
		values = []string{"7"}
	default:
		t.Fatalf("%s: this test knows no value for a %v", path, goType)
	}
	var all []setting
	for _, value := range values {
		if value == string(defaultOf(schema)) {
			continue
		}
		decoded := reflect.New(goType)
		if err := json.Unmarshal([]byte(value), decoded.Interface()); err != nil {
			t.Fatalf("%s: %s: %v", path, value, err)
		}
		all = append(all, setting{path, decoded.Elem()})
	}
	return all
}

func defaultOf(schema apiextensionsv1.JSONSchemaProps) []byte {
	if schema.Default == nil {
		return nil
	}
	return schema.Default.Raw
}

// The tests of fields are only as good as the settings that they try.
func TestSettings(t *testing.T) {
	type Inner struct {
		Text string `json:"text"`
	}
	type outer struct {
		Inner `json:",inline"`
		Flag  bool              `json:"flag"`
		Yes   *bool             `json:"yes"`
		No    *bool             `json:"no"`
		Both  *bool             `json:"both"`
		Enum  string            `json:"enum"`
		Count *int32            `json:"count"`
		Empty *struct{}         `json:"empty"`
		Items []Inner           `json:"items"`
		Names []string          `json:"names"`
		Map   map[string]string `json:"map"`
		Time  *metav1.Time      `json:"time"`
	}
	raw := func(text string) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: []byte(text)} }
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	object := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"text": text}}
	schema := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"text":  text,
		"flag":  {Type: "boolean", Default: raw("false")},
		"yes":   {Type: "boolean", Default: raw("true")},
		"no":    {Type: "boolean", Default: raw("false")},
		"both":  {Type: "boolean"},
		"enum":  {Type: "string", Enum: []apiextensionsv1.JSON{*raw(`"A"`), *raw(`"B"`), *raw(`"C"`)}, Default: raw(`"B"`)},
		"count": {Type: "integer"},
		"empty": {Type: "object"},
		"items": {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &object}},
		"names": {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &text}},
		"map":   {Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &text}},
		"time":  {Type: "string"},
	}}
	var got []string
	for _, setting := range settings(t, "spec", reflect.TypeFor[outer](), schema) {
		content, err := json.Marshal(setting.value.Interface())
		if err != nil {
			t.Fatal(err)
		}
		var fields, zero map[string]any
		if err := json.Unmarshal(content, &fields); err != nil {
			t.Fatal(err)
		}
		content, err = json.Marshal(outer{})
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(content, &zero); err != nil {
			t.Fatal(err)
		}
		var set []string
		for name, value := range fields {
			if !reflect.DeepEqual(value, zero[name]) {
				set = append(set, fmt.Sprintf("%s=%v", name, value))
			}
		}
		slices.Sort(set)
		got = append(got, setting.path+": "+strings.Join(set, " "))
	}
	want := []string{
		"spec.text: text=x", "spec.flag: flag=true", "spec.yes: yes=false", "spec.no: no=true", "spec.both: both=true", "spec.both: both=false",
		"spec.enum: enum=A", "spec.enum: enum=C", "spec.count: count=7", "spec.empty: empty=map[]", "spec.items[].text: items=[map[text:x]]",
		"spec.names[]: names=[x]", "spec.map: map=map[key:x]", "spec.time: time=1970-01-01T00:00:01Z",
	}
	if !slices.Equal(got, want) {
		t.Errorf("want %q\ngot  %q", want, got)
	}
}
