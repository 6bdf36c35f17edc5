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

package customization

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/fieldpath"
	"github.com/synchub-dev/synchub/controllers/plan/mutation"
)

// maxGrowth is how many bytes customization may add to an object. API servers accept objects of about 1.5 MiB.
const maxGrowth = 1 << 20

// Reasons of an [Error].
const (
	// ReasonUnknownParameter: an object, or a Customizer, names a parameter that the destination does not have.
	ReasonUnknownParameter = "UnknownParameter"
	// ReasonInvalid: the object or the Customizer is invalid, or a replacement does not fit the object.
	ReasonInvalid = "Invalid"
	// ReasonTooLarge: the object would grow too much.
	ReasonTooLarge = "TooLarge"
)

// Error is why an object cannot be customized for a destination.
type Error struct {
	// Reason is one of the constants.
	Reason string
	// Field is the path of the field at fault in the object. For a fault in the Customizer, it begins with the
	// Customizer's name.
	Field string
	// Message states the problem. It may quote the fields of the object and the Customizer, but no value of a
	// parameter.
	Message string
}

func (e *Error) Error() string { return e.Field + ": " + e.Message }

// Request holds the customization annotations of an object.
type Request struct {
	// Expand is true if parameters in the object itself must be expanded.
	Expand bool
	// Customizer is the name of a Customizer; zero for none.
	Customizer types.NamespacedName
}

// RequestOf parses the customization annotations of an object. The error is an [*Error].
func RequestOf(object *unstructured.Unstructured) (Request, error) {
	expand, _ := plan.Annotation(object, edgev2alpha1.AnnotationExpandParameters)
	request := Request{Expand: expand == "true"}
	name, ok := plan.Annotation(object, edgev2alpha1.AnnotationCustomizer)
	if !ok {
		return request, nil
	}
	namespace, want := object.GetNamespace(), "a Customizer of the same namespace by its name"
	if namespace == "" {
		namespace, name, _ = strings.Cut(name, "/")
		want = "a Customizer as <namespace>/<name>"
	}
	if len(content.IsDNS1123Label(namespace)) > 0 || len(content.IsDNS1123Subdomain(name)) > 0 {
		return Request{}, &Error{ReasonInvalid, fmt.Sprintf("metadata.annotations['%s']", edgev2alpha1.AnnotationCustomizer), "it does not name " + want}
	}
	request.Customizer = types.NamespacedName{Namespace: namespace, Name: name}
	return request, nil
}

// IsZero reports whether the object requests no customization.
func (r Request) IsZero() bool { return r == Request{} }

// Customize returns a copy of an object for one destination. customizer is the Customizer of the request; nil
// for none. The error is an [*Error].
func Customize(object *unstructured.Unstructured, request Request, customizer *edgev2alpha1.Customizer, parameters Parameters) (*unstructured.Unstructured, error) {
	customized := object.DeepCopy()
	annotations := customized.GetAnnotations()
	// kubectl's annotation repeats the object; copies never have it.
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	customized.SetAnnotations(annotations)
	e := &expander{parameters: parameters, growth: maxGrowth}
	if request.Expand {
		if err := e.expandObject(customized.Object); err != nil {
			return nil, err
		}
	}
	if customizer == nil {
		return customized, nil
	}
	expands := customizer.Annotations[edgev2alpha1.AnnotationExpandParameters] == "true"
	for i := range customizer.Replacements {
		if err := e.replace(customized.Object, &customizer.Replacements[i], expands); err != nil {
			return nil, err.within(fmt.Sprintf("Customizer %s: replacements[%d]", request.Customizer, i))
		}
	}
	return customized, nil
}

// replace makes a replacement in an object. The error's field is a field of the replacement.
func (e *expander) replace(object map[string]any, replacement *edgev2alpha1.Replacement, expands bool) *Error {
	path, value := replacement.Path, replacement.Value
	if expands {
		var err *Error
		if path, err = e.expand(path); err != nil {
			return err.within("path")
		}
		if value, err = e.expand(value); err != nil {
			return err.within("value")
		}
	}
	var fixed any
	// Kubernetes' decoder keeps integers.
	if err := json.Unmarshal([]byte(value), &fixed); err != nil {
		return &Error{ReasonInvalid, "value", "is not valid JSON, in which a text is in double quotes: " + err.Error()}
	}
	err := e.set(object, path, fixed, len(value))
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errGrowth):
		return &Error{ReasonTooLarge, "value", errGrowth.Error()}
	case path != replacement.Path:
		// The error may quote values of parameters.
		return &Error{ReasonInvalid, "path", "with its parameters expanded, it is no valid path, or does not fit the object"}
	default:
		return &Error{ReasonInvalid, "path", err.Error()}
	}
}

// set sets the values at a path, or removes them if the value is nil. size is the size of the value in bytes.
func (e *expander) set(object map[string]any, path string, value any, size int) error {
	target, err := fieldpath.ParseJSONPath(path)
	if err != nil {
		return err
	}
	if target.Root() == "status" {
		return errors.New("the status cannot be changed, because copies are made without it")
	}
	if err := mutation.CheckPath(target); err != nil {
		return err
	}
	if value == nil {
		target.Delete(object)
		return nil
	}
	if err := target.Change(object, true, func(any, bool) (any, error) {
		if e.growth -= size; e.growth < 0 {
			return nil, errGrowth
		}
		return runtime.DeepCopyJSONValue(value), nil
	}); err != nil {
		return err
	}
	return mutation.ValidateMetadata(object)
}
