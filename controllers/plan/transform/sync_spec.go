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

package transform

import (
	"cmp"
	"errors"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan/conversion"
	"github.com/synchub-dev/synchub/controllers/plan/mutation"
	"github.com/synchub-dev/synchub/controllers/plan/naming"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

// SyncSpec is the spec that transforms one object for the other side. The zero value changes nothing.
type SyncSpec struct {
	Policy ownership.Policy
	// Conversion is a config's conversion, and overrides Kind. Naming applies to its result.
	Conversion *conversion.Conversion
	// Kind is the kind on the other side; zero for the same kind.
	Kind schema.GroupVersionKind
	// Version overrides the version of Kind and Conversion, unless it is empty.
	Version string
	// Namespace and Name are the namespace and the name on the other side, unless Naming sets them; empty for the same.
	Namespace, Name string
	// Workspace is the workload workspace that the object, a Namespace, belongs to; zero for none.
	Workspace WorkspaceMark
	// Naming renames the object, by templates over the object and Variables.
	Naming    *naming.Namer
	Variables map[string]any
	// Mutation changes the object. It may read the inputs.
	Mutation *mutation.Program
	Inputs   mutation.Inputs
	// IgnoredFields are not applied, because the other side owns them.
	IgnoredFields []IgnoredField
	// ReportsDrift is true if the hub reports changes of other clients on the other side, and does not undo them.
	ReportsDrift bool
	// Relation names the relation that syncs the object, if the object is related (see [ownership.Mark]).
	Relation string
}

// applyNaming returns the name that Naming gives the object, instead of the name given.
func (s SyncSpec) applyNaming(object *unstructured.Unstructured, mailbox, syncTarget string, name conversion.Name, namespaced bool) (conversion.Name, error) {
	if s.Namespace != "" && name.Namespace != "" {
		name.Namespace = s.Namespace
	}
	name.Name = cmp.Or(s.Name, name.Name)
	if s.Naming == nil {
		return name, nil
	}
	variables := map[string]any{"Object": object.Object, "Mailbox": mailbox, "SyncTarget": syncTarget}
	maps.Copy(variables, s.Variables)
	key, err := s.Naming.Name(variables, types.NamespacedName{Namespace: name.Namespace, Name: name.Name}, namespaced, name.GVK.GroupKind())
	illegal, isIllegal := errors.AsType[*naming.InvalidNameError](err)
	switch {
	case isIllegal:
		return conversion.Name{}, &InvalidObjectError{Field: illegal.Field, Message: fmt.Sprintf("it yields %q: %s", illegal.Value, illegal.Message)}
	case err != nil:
		return conversion.Name{}, &InvalidObjectError{Field: "spec.naming", Message: err.Error()}
	default:
		name.Namespace, name.Name = key.Namespace, key.Name
		return name, nil
	}
}

// contentOf returns the content of an object for the other side, under its name there. travels reports whether an annotation is
// synced. A status that a mutation sets is dropped.
func (s SyncSpec) contentOf(source *unstructured.Unstructured, name conversion.Name, travels func(annotation string) bool) (map[string]any, error) {
	content := sanitize(source, travels)
	if err := rename(content, name); err != nil || s.Mutation == nil {
		return content, err
	}
	err := s.Mutation.Run(content, s.Inputs)
	delete(content, "status")
	return content, err
}
