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

package mutation

import (
	"errors"
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/expression"
	"github.com/synchub-dev/synchub/controllers/plan/fieldpath"
)

// step is one compiled step.
type step struct {
	path fieldpath.Path
	// create is true if missing fields are created.
	create bool
	// usesOther and usesSyncTarget are true if the new value depends on that input.
	usesOther, usesSyncTarget bool
	// compute returns the new value; nil removes the field.
	compute func(value any, object map[string]any, inputs Inputs) (any, error)
}

func (s step) run(object map[string]any, inputs Inputs) error {
	err := s.path.Change(object, s.create, func(value any, _ bool) (any, error) {
		changed, err := s.compute(value, object, inputs)
		if changed == nil {
			changed = fieldpath.Absent
		}
		return changed, err
	})
	if err != nil || s.path.Root() != "metadata" {
		return err
	}
	return ValidateMetadata(object)
}

// compile compiles a step. The error begins with the field.
func compile(spec *synchubv1alpha1.MutationStep) (step, error) {
	var compiled []func() (step, error)
	if spec.Delete != nil {
		compiled = append(compiled, func() (step, error) { return compileDelete(spec.Delete) })
	}
	if spec.Set != nil {
		compiled = append(compiled, func() (step, error) { return compileSet(spec.Set) })
	}
	if spec.Regex != nil {
		compiled = append(compiled, func() (step, error) { return compileRegex(spec.Regex) })
	}
	if spec.Template != nil {
		compiled = append(compiled, func() (step, error) { return compileTemplate(spec.Template) })
	}
	if spec.CEL != nil {
		compiled = append(compiled, func() (step, error) { return compileCEL(spec.CEL) })
	}
	if len(compiled) != 1 {
		return step{}, fmt.Errorf(": exactly one of delete, set, regex, template and cel is required, not %d", len(compiled))
	}
	return compiled[0]()
}

func compileDelete(spec *synchubv1alpha1.DeleteMutation) (step, error) {
	target, err := parsePath(spec.Path)
	if err != nil {
		return step{}, fmt.Errorf(".delete.path: %w", err)
	}
	return step{path: target, compute: func(any, map[string]any, Inputs) (any, error) { return nil, nil }}, nil
}

func compileSet(spec *synchubv1alpha1.SetMutation) (step, error) {
	target, err := parsePath(spec.Path)
	if err != nil {
		return step{}, fmt.Errorf(".set.path: %w", err)
	}
	if raw := string(spec.Value.Raw); raw == "" || raw == "null" {
		return step{}, errors.New(".set.value: must not be null: use delete to remove a field")
	}
	var fixed any
	// Kubernetes' decoder keeps integers.
	if err := json.Unmarshal(spec.Value.Raw, &fixed); err != nil {
		return step{}, fmt.Errorf(".set.value: not valid JSON: %w", err)
	}
	return step{path: target, create: true, compute: func(any, map[string]any, Inputs) (any, error) {
		return runtime.DeepCopyJSONValue(fixed), nil
	}}, nil
}

func compileRegex(spec *synchubv1alpha1.RegexMutation) (step, error) {
	target, err := parsePath(spec.Path)
	if err != nil {
		return step{}, fmt.Errorf(".regex.path: %w", err)
	}
	pattern, err := regexp.Compile(spec.Pattern)
	if err != nil {
		return step{}, fmt.Errorf(".regex.pattern: %w", err)
	}
	replacement := spec.Replacement
	return step{path: target, compute: func(value any, _ map[string]any, _ Inputs) (any, error) {
		text, ok := value.(string)
		if !ok {
			return nil, fmt.Errorf("is %s, but a regex replaces in text only", fieldpath.TypeName(value))
		}
		return expression.ReplaceAll(pattern, text, replacement)
	}}, nil
}

func compileTemplate(spec *synchubv1alpha1.TemplateMutation) (step, error) {
	target, err := parsePath(spec.Path)
	if err != nil {
		return step{}, fmt.Errorf(".template.path: %w", err)
	}
	template, err := expression.ParseTemplate(spec.Template, "Value", "Object", "Other", "SyncTarget")
	if err != nil {
		return step{}, fmt.Errorf(".template.template: %w", err)
	}
	return step{
		path: target, create: true, usesOther: template.Uses("Other"), usesSyncTarget: template.Uses("SyncTarget"),
		compute: func(value any, object map[string]any, inputs Inputs) (any, error) {
			return template.Render(map[string]any{"Value": value, "Object": object, "Other": inputs.Other, "SyncTarget": inputs.SyncTarget})
		},
	}, nil
}

func compileCEL(spec *synchubv1alpha1.CELMutation) (step, error) {
	target, err := parsePath(spec.Path)
	if err != nil {
		return step{}, fmt.Errorf(".cel.path: %w", err)
	}
	program, err := expression.CompileCEL(spec.Expression, "value", "self", "other", "syncTarget")
	if err != nil {
		return step{}, fmt.Errorf(".cel.expression: %w", err)
	}
	return step{
		path: target, create: true, usesOther: program.Uses("other"), usesSyncTarget: program.Uses("syncTarget"),
		compute: func(value any, object map[string]any, inputs Inputs) (any, error) {
			variables := map[string]any{"value": value, "self": object, "other": nil, "syncTarget": inputs.SyncTarget}
			if inputs.Other != nil {
				variables["other"] = inputs.Other
			}
			return program.Evaluate(variables)
		},
	}, nil
}

// mutablePaths match the paths that a mutation may change within the metadata.
var mutablePaths = regexp.MustCompile(`^metadata\.(labels|annotations)($|[.\[])`)

func parsePath(text synchubv1alpha1.MutablePath) (fieldpath.Path, error) {
	target, err := fieldpath.Parse(string(text))
	if err != nil {
		return fieldpath.Path{}, err
	}
	return target, CheckPath(target)
}

// CheckPath returns an error if a mutation may not change the value at a path.
func CheckPath(target fieldpath.Path) error {
	switch target.Root() {
	case "apiVersion", "kind", "metadata":
		if !mutablePaths.MatchString(target.String()) {
			return errors.New("apiVersion, kind and metadata cannot be changed, except metadata.labels and metadata.annotations")
		}
	}
	return nil
}

// ValidateMetadata validates labels and annotations as an API server does. The error is a [*fieldpath.Error].
func ValidateMetadata(object map[string]any) error {
	metadata, _ := object["metadata"].(map[string]any)
	for _, field := range []string{"labels", "annotations"} {
		content, ok := metadata[field]
		if !ok {
			continue
		}
		entries, ok := content.(map[string]any)
		if !ok {
			return &fieldpath.Error{Location: "metadata." + field, Err: fmt.Errorf("became %s, but must be a map", fieldpath.TypeName(content))}
		}
		if key, ok := firstNonString(entries); ok {
			return &fieldpath.Error{Location: fmt.Sprintf("metadata.%s['%s']", field, key), Err: fmt.Errorf("became %s, but must be text", fieldpath.TypeName(entries[key]))}
		}
	}
	return nil
}

// firstNonString returns the first key, in alphabetical order, whose value is not a string.
func firstNonString(entries map[string]any) (first string, found bool) {
	for key, value := range entries {
		if _, ok := value.(string); !ok && (!found || key < first) {
			first, found = key, true
		}
	}
	return first, found
}
