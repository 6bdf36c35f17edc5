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

package objectdiff

import (
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	kubectldiff "k8s.io/kubectl/pkg/cmd/diff"
	"k8s.io/utils/exec"
)

// Change is the content of an object before and after a change; nil if there is no object.
type Change struct{ From, To map[string]any }

// Masked returns the change without the values of a Secret, as kubectl masks them. It returns other changes as they are.
func (c Change) Masked() (Change, error) {
	object := c.object()
	if object.GetKind() != "Secret" || object.GetAPIVersion() != "v1" {
		return c, nil
	}
	masker, err := kubectldiff.NewMasker(runtimeObject(c.From), runtimeObject(c.To))
	if err != nil {
		return Change{}, err
	}
	var masked Change
	if from, _ := masker.From().(*unstructured.Unstructured); from != nil {
		masked.From = from.Object
	}
	if to, _ := masker.To().(*unstructured.Unstructured); to != nil {
		masked.To = to.Object
	}
	return masked, nil
}

// object returns the object after the change, or before it if there is none then.
func (c Change) object() *unstructured.Unstructured {
	if c.To != nil {
		return &unstructured.Unstructured{Object: c.To}
	}
	return &unstructured.Unstructured{Object: c.From}
}

// runtimeObject returns an object with a content; nil for none.
func runtimeObject(content map[string]any) runtime.Object {
	if content == nil {
		return nil
	}
	return &unstructured.Unstructured{Object: content}
}

// Print prints changes with the program that kubectl diff uses. It masks the values of Secrets.
func Print(streams genericiooptions.IOStreams, changes []Change) error {
	differ, err := kubectldiff.NewDiffer("LIVE", "MERGED")
	if err != nil {
		return err
	}
	defer differ.TearDown()
	for _, change := range changes {
		if change, err = change.Masked(); err != nil {
			return err
		}
		name := fileName(change.object())
		if err := printVersion(differ.From, name, change.From); err != nil {
			return err
		}
		if err := printVersion(differ.To, name, change.To); err != nil {
			return err
		}
	}
	err = differ.Run(&kubectldiff.DiffProgram{Exec: exec.New(), IOStreams: streams})
	if exit, ok := errors.AsType[exec.ExitError](err); ok && exit.ExitStatus() <= 1 {
		return nil
	}
	return err
}

// printVersion writes a version of an object, unless there is none.
func printVersion(version *kubectldiff.DiffVersion, name string, content map[string]any) error {
	if content == nil {
		return nil
	}
	return version.Print(name, &unstructured.Unstructured{Object: content}, kubectldiff.Printer{})
}

// fileName returns the name that kubectl diff gives the file of an object.
func fileName(of *unstructured.Unstructured) string {
	kind := of.GroupVersionKind()
	parts := []string{kind.Version, kind.Kind, of.GetNamespace(), of.GetName()}
	if kind.Group != "" {
		parts = append([]string{kind.Group}, parts...)
	}
	return strings.ReplaceAll(strings.Join(parts, "."), "/", "_")
}
