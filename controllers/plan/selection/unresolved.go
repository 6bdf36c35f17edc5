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

package selection

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
)

// maxUnresolved bounds the invalid entries of a mailbox that are compared with objects. Beyond it every object is unresolved.
const maxUnresolved = 100

// unresolved are the invalid entries for one direction. A typing error must not delete objects: if no valid entry selects an
// object, but an invalid entry may be meant for it, it is unknown whether the object is selected.
type unresolved struct {
	entries []unresolvedEntry
	// everything is true if an invalid entry may be meant to select any object.
	everything bool
}

// unresolvedEntry is the valid part of an invalid entry.
type unresolvedEntry struct {
	group, resource, kind string
	namespaces, names     nameSet
	// anyNamespace and anyName are true if the list has an invalid element.
	anyNamespace, anyName bool
}

func (u *unresolved) add(entry Entry, scope nameScope) {
	if u.everything = u.everything || len(u.entries) >= maxUnresolved; u.everything {
		u.entries = nil
		return
	}
	u.entries = append(u.entries, unresolvedEntry{
		group: entry.Group, resource: entry.Resource, kind: entry.Kind, namespaces: scope.namespaces, names: scope.names,
		anyNamespace: scope.invalidNamespace != "", anyName: scope.invalidName != "",
	})
}

func (u *unresolved) has(object Object) bool {
	return u.everything || slices.ContainsFunc(u.entries, func(entry unresolvedEntry) bool { return entry.mayMean(object) })
}

func (u *unresolved) empty() bool { return !u.everything && len(u.entries) == 0 }

func (e unresolvedEntry) mayMean(object Object) bool {
	return e.group == object.Resource.Group &&
		(e.resource != "" && (e.resource == All || e.resource == object.Resource.Resource) || e.kind != "" && (e.kind == All || e.kind == object.Kind)) &&
		(e.anyNamespace || e.namespaces.all || e.namespaces.has(object.Namespace)) &&
		(e.anyName || e.names.all || e.names.has(object.Name))
}

// IsUnresolved reports whether it is unknown if a mailbox object is selected that no entry selects: further configs may select
// it, or an invalid entry or conversion may be meant for it. Its copy does not change.
func (m *Matcher) IsUnresolved(mailbox Object) bool {
	return m != nil && (m.partial || m.unresolvedDown.has(mailbox) || slices.ContainsFunc(m.down.rulesMatching(mailbox), func(rule *rule) bool {
		return rule.config.invalidConversions.mayConvertDown(mailbox)
	}))
}

// IsUnresolvedUp does the same for a target object.
func (m *Matcher) IsUnresolvedUp(target Object) bool {
	return m != nil && (m.partial || m.unresolvedUp.has(target) || slices.ContainsFunc(m.up.rulesMatching(target), func(rule *rule) bool {
		return rule.config.invalidConversions.mayConvertUp(target)
	}))
}

// HasUnresolved reports whether any object can be unresolved.
func (m *Matcher) HasUnresolved() bool {
	return m != nil && (m.partial || !m.unresolvedDown.empty() || !m.unresolvedUp.empty() ||
		slices.ContainsFunc(m.configs, func(config *config) bool { return len(config.invalidConversions) > 0 }))
}

// apiProblem returns why an entry cannot name an API; empty if it can.
func apiProblem(entry Entry) string {
	switch {
	case entry.Resource == "" && entry.Kind == "":
		return "it names neither a resource nor a kind"
	case strings.Contains(entry.Resource, "/"):
		return fmt.Sprintf("%q is a subresource; name the resource", entry.Resource)
	case entry.Group != "" && len(validation.IsDNS1123Subdomain(entry.Group)) > 0:
		return fmt.Sprintf("%q is no API group, which has neither a version nor capital letters", entry.Group)
	case entry.Resource != "" && entry.Resource != All && len(validation.IsDNS1123Subdomain(entry.Resource)) > 0:
		return fmt.Sprintf("%q is no resource; write it as in a URL, such as deployments", entry.Resource)
	case entry.Kind != "" && entry.Kind != All && len(validation.IsDNS1123Label(strings.ToLower(entry.Kind))) > 0:
		return fmt.Sprintf("%q is no kind", entry.Kind)
	default:
		return ""
	}
}

// versionProblem returns why a version is invalid; empty if it is valid.
func versionProblem(version string) string {
	if version != "" && version != All && len(validation.IsDNS1123Label(version)) > 0 {
		return fmt.Sprintf("%q is no version, such as v1", version)
	}
	return ""
}

// invalidNamespaceIn returns an invalid name of a namespace in a list; empty if there is none.
func invalidNamespaceIn(namespaces []string) string {
	return firstInvalid(namespaces, func(name string) bool { return len(validation.IsDNS1123Label(name)) > 0 })
}

// invalidNameIn returns an invalid name of an object in a list; empty if there is none.
func invalidNameIn(names []string) string {
	return firstInvalid(names, func(name string) bool {
		return strings.Contains(name, All) || len(content.IsPathSegmentName(name)) > 0
	})
}

func firstInvalid(names []string, isInvalid func(string) bool) string {
	for _, name := range names {
		if name != "" && name != All && isInvalid(name) {
			return name
		}
	}
	return ""
}

// selectorProblem compiles a selector for metadata. If the selector is invalid, it returns the field and the reason.
func selectorProblem(selector *metav1.LabelSelector, annotations map[string]string) (compiled labels.Selector, field string, problem string) {
	if selector != nil {
		var err error
		if compiled, err = metav1.LabelSelectorAsSelector(selector); err != nil {
			return nil, ".labelSelector", err.Error()
		}
	}
	for key := range annotations {
		if reasons := validation.IsQualifiedName(strings.ToLower(key)); len(reasons) > 0 {
			return nil, ".annotations", fmt.Sprintf("%q is no key: %s", key, reasons[0])
		}
	}
	return compiled, "", ""
}
