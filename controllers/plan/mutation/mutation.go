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
	"slices"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/fieldpath"
)

// Program is a list of compiled steps. It is immutable and safe for concurrent use. The nil Program has no steps.
type Program struct {
	steps []step
}

// Error reports which step failed, and at which path of the object.
type Error struct {
	// Step counts from 0.
	Step int
	// Path is the path of the value for which the step failed.
	Path string
	Err  error
}

func (e *Error) Error() string { return fmt.Sprintf("step [%d] at %s: %v", e.Step, e.Path, e.Err) }
func (e *Error) Unwrap() error { return e.Err }

// Compile compiles steps; the program is nil if there are none. The error names the step and the field of each mistake, as in
// "[2].cel.expression: ...".
func Compile(steps []synchubv1alpha1.MutationStep) (*Program, error) {
	if len(steps) == 0 {
		return nil, nil
	}
	program := &Program{}
	var errs []error
	for number := range steps {
		compiled, err := compile(&steps[number])
		if err != nil {
			errs = append(errs, fmt.Errorf("[%d]%w", number, err))
		}
		program.steps = append(program.steps, compiled)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return program, nil
}

// Inputs are the values that steps read beside the object that they change. Run does not change them.
type Inputs struct {
	// Other is the object on the other side, nil if there is none.
	Other map[string]any
	// SyncTarget is the SyncTarget of the target, as [SyncTarget] returns it.
	SyncTarget map[string]any
}

// SyncTarget returns the part of a SyncTarget that steps can read: its name, labels and annotations, at the paths that they have
// in the SyncTarget. The maps of labels and annotations exist even if they are empty, so that has() works on their keys.
func SyncTarget(name string, labels, annotations map[string]string) map[string]any {
	return map[string]any{"metadata": map[string]any{"name": name, "labels": jsonMap(labels), "annotations": jsonMap(annotations)}}
}

func jsonMap(texts map[string]string) map[string]any {
	values := make(map[string]any, len(texts))
	for key, text := range texts {
		values[key] = text
	}
	return values
}

// Run changes an object. If it returns an error, which is an *Error, some steps may have changed the object already.
func (p *Program) Run(object map[string]any, inputs Inputs) error {
	if p == nil {
		return nil
	}
	for number, step := range p.steps {
		if err := step.run(object, inputs); err != nil {
			failed := &Error{Step: number, Path: step.path.String(), Err: err}
			if placed, ok := errors.AsType[*fieldpath.Error](err); ok {
				failed.Path, failed.Err = placed.Location, placed.Err
			}
			return failed
		}
	}
	return nil
}

// UsesOther reports whether the result depends on the object on the other side.
func (p *Program) UsesOther() bool {
	return p != nil && slices.ContainsFunc(p.steps, func(step step) bool { return step.usesOther })
}

// UsesSyncTarget reports whether the result depends on the SyncTarget.
func (p *Program) UsesSyncTarget() bool {
	return p != nil && slices.ContainsFunc(p.steps, func(step step) bool { return step.usesSyncTarget })
}

// MayChangeField reports whether a step may change a field of the object, such as status, or a value in it.
func (p *Program) MayChangeField(field string) bool {
	return p != nil && slices.ContainsFunc(p.steps, func(step step) bool { return step.path.Root() == field })
}

// MayChange reports whether a step may change the value at a path, or a value in it.
func (p *Program) MayChange(field fieldpath.Path) bool {
	return p != nil && slices.ContainsFunc(p.steps, func(step step) bool { return step.path.Overlaps(field) })
}
