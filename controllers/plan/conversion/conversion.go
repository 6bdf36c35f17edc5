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

package conversion

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

// Any stands for every kind of a group, and, like "", for every version, namespace or name.
const Any = "*"

// Name is the name of an object on one side, with its kind.
type Name struct {
	GVK schema.GroupVersionKind
	// Namespace is empty for cluster-scoped objects.
	Namespace, Name string
}

// Pattern matches objects on one side. In Version, Namespace and Name, "" and "*" match any; Kind "*" matches any kind of the
// group. Group "" is the core group.
type Pattern struct {
	Group, Version, Kind, Namespace, Name string
}

// Conversion maps objects that match Upstream in the mailbox to Downstream on the target. Two conversions of equal value have
// the same effect.
type Conversion struct {
	Upstream, Downstream Pattern
}

// New returns the conversion of a config. A part that only one side has is copied to the other side; "" stands for any. The error
// names the invalid fields.
func New(spec edgev2alpha1.Conversion) (Conversion, error) {
	if err := validate(spec); err != nil {
		return Conversion{}, err
	}
	up, down := newPattern(spec.Upstream), newPattern(spec.Downstream)
	up.Version, down.Version = fillWildcards(up.Version, down.Version)
	up.Namespace, down.Namespace = fillWildcards(up.Namespace, down.Namespace)
	up.Name, down.Name = fillWildcards(up.Name, down.Name)
	return Conversion{Upstream: up, Downstream: down}, nil
}

func newPattern(resource edgev2alpha1.EdgeSyncConfigResource) Pattern {
	return Pattern{
		Group: resource.Group, Version: resource.Version, Kind: resource.Kind,
		Namespace: resource.Namespace, Name: resource.Name,
	}
}

func validate(spec edgev2alpha1.Conversion) error {
	var errs field.ErrorList
	upstream, downstream := field.NewPath("upstream"), field.NewPath("downstream")
	for _, side := range []struct {
		path *field.Path
		edgev2alpha1.EdgeSyncConfigResource
	}{{upstream, spec.Upstream}, {downstream, spec.Downstream}} {
		if side.Kind == "" {
			errs = append(errs, field.Required(side.path.Child("kind"), "name a kind, or * on both sides"))
		}
		if side.Group == Any || strings.Contains(side.Group, "/") {
			errs = append(errs, field.Invalid(side.path.Child("group"), side.Group, "name one group, without a version"))
		}
	}
	if spec.Upstream.Kind != "" && spec.Downstream.Kind != "" && (spec.Upstream.Kind == Any) != (spec.Downstream.Kind == Any) {
		errs = append(errs, field.Invalid(downstream.Child("kind"), spec.Downstream.Kind, "* must stand on both sides or on none"))
	}
	if up, down := fillWildcards(spec.Upstream.Namespace, spec.Downstream.Namespace); up != down {
		errs = append(errs, field.Invalid(downstream.Child("namespace"), down, "a conversion cannot move objects to another namespace"))
	}
	if isAny(spec.Upstream.Name) && !isAny(spec.Downstream.Name) {
		errs = append(errs, field.Invalid(downstream.Child("name"), spec.Downstream.Name, "many upstream names cannot become one downstream name"))
	}
	return errs.ToAggregate()
}

// Down returns the name on the target of a mailbox object; ok is false if the conversion does not match the object. The nil
// Conversion changes no name.
func (c *Conversion) Down(mailbox Name) (target Name, ok bool) {
	if c == nil {
		return mailbox, true
	}
	return convertName(c.Upstream, c.Downstream, mailbox)
}

// Up returns the name in the mailbox of a target object; ok is false if the conversion does not match the object. The nil
// Conversion changes no name.
func (c *Conversion) Up(target Name) (mailbox Name, ok bool) {
	if c == nil {
		return target, true
	}
	return convertName(c.Downstream, c.Upstream, target)
}

// convertName is its own inverse with the patterns exchanged.
func convertName(from, to Pattern, name Name) (Name, bool) {
	// These are not names of single objects, and the result must be one.
	if name.GVK.Kind == "" || name.GVK.Kind == Any || name.Name == Any || name.GVK.Group != from.Group {
		return Name{}, false
	}
	version, versionOK := convertField(from.Version, to.Version, name.GVK.Version)
	kind, kindOK := convertField(from.Kind, to.Kind, name.GVK.Kind)
	namespace, namespaceOK := convertField(from.Namespace, to.Namespace, name.Namespace)
	called, nameOK := convertField(from.Name, to.Name, name.Name)
	if !versionOK || !kindOK || !nameOK || !namespaceOK || namespace != name.Namespace {
		return Name{}, false
	}
	return Name{
		GVK:       schema.GroupVersionKind{Group: to.Group, Version: version, Kind: kind},
		Namespace: namespace,
		Name:      called,
	}, true
}

// convertField returns the value on the other side; ok is false if the pattern does not match the value.
func convertField(from, to, value string) (exchanged string, ok bool) {
	from, to = fillWildcards(from, to)
	if from == "" {
		return value, true
	}
	return to, value == from
}

// fillWildcards replaces a wildcard by the other side's value, since otherwise many values would map to one.
func fillWildcards(one, other string) (string, string) {
	switch {
	case isAny(one) && isAny(other):
		return "", ""
	case isAny(one):
		return other, other
	case isAny(other):
		return one, one
	default:
		return one, other
	}
}

func isAny(value string) bool { return value == "" || value == Any }
