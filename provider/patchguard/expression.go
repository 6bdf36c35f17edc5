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

package patchguard

import "fmt"

// The CEL expressions below compare `before` and `after`, the maps that hold the merged lists of an object. A policy is
// compiled once in each workspace, so each expression occurs once, for all lists, and none is unrolled further than needed.

// mapDepth is how many maps within each other [keepsFields] follows in an item. The deepest that a client changes alone is
// ephemeral.volumeClaimTemplate.spec of a volume.
const mapDepth = 3

// lostLists is an expression for the names of the lists that lose an item, or a field of an item. A list that is missing as a
// whole was removed on purpose: a strategic merge patch does so by null, which kcp understands.
func lostLists() string {
	nested := fmt.Sprintf("variables.nested.all(g, !(g in x) || !(g in y) || x[g] == y[g] || %s)", keepsItems("x[g]", "y[g]", "variables.nested[g]", "v", "w", "true"))
	return fmt.Sprintf("variables.lists.filter(f, f in variables.before && f in variables.after && variables.before[f] != variables.after[f] && !(%s))",
		keepsItems("variables.before[f]", "variables.after[f]", "variables.lists[f]", "x", "y", nested))
}

// keepsItems is an expression that is true if each item x of the list o is an item y of the list n, with all its fields. more
// is another condition on x and y.
func keepsItems(o, n, key, x, y, more string) string {
	return fmt.Sprintf("%[1]s.all(%[4]s, %[4]s in %[2]s || %[2]s.exists(%[5]s, %[3]s in %[5]s && %[4]s[%[3]s] == %[5]s[%[3]s] && %[6]s && %[7]s)) || variables.mayRemove && %[8]s",
		o, n, key, x, y, keepsFields(x, y, mapDepth), more, removesOne(o, n, key, x, y))
}

// keepsFields is an expression that is true if the map y has all fields of the map x, and likewise the maps in them. Empty fields
// do not count, such as the resources of `kubectl create deployment`.
func keepsFields(x, y string, depth int) string {
	k := fmt.Sprintf("k%d", depth)
	inX, inY := x+"["+k+"]", y+"["+k+"]"
	within := ""
	if depth > 0 {
		within = fmt.Sprintf(" && (type(%s) != map || type(%s) == map && %s)", inX, inY, keepsFields(inX, inY, depth-1))
	}
	return fmt.Sprintf("%s.all(%s, %s == {} || %s == [] || %s == null || %s in %s%s)", x, k, inX, inX, inX, k, y, within)
}

// removesOne is an expression that is true if a single item of the list o is missing in n, or has lost fields of a single field,
// and nothing else differs.
func removesOne(o, n, key, x, y string) string {
	return fmt.Sprintf("%[1]s.filter(%[4]s, !(%[4]s in %[2]s)).size() == 1 && %[2]s.all(%[5]s, %[5]s in %[1]s || %[1]s.exists(%[4]s, %[3]s in %[5]s && %[4]s[%[3]s] == %[5]s[%[3]s] && %[4]s.size() <= %[5]s.size() + 1 && %[6]s))",
		o, n, key, x, y, isWithin(y, x, mapDepth-1))
}

// isWithin is an expression that is true if each field of the map y has the same value in the map x, or is a map within it.
func isWithin(y, x string, depth int) string {
	k := fmt.Sprintf("k%d", depth)
	inX, inY := x+"["+k+"]", y+"["+k+"]"
	same := fmt.Sprintf("%s == %s", inX, inY)
	if depth > 0 {
		same = fmt.Sprintf("(%s || type(%s) == map && type(%s) == map && %s)", same, inX, inY, isWithin(inY, inX, depth-1))
	}
	return fmt.Sprintf("%s.all(%s, %s in %s && %s)", y, k, k, x, same)
}

// hasDirective is an expression that is true if an item has a directive of a strategic merge patch, which kcp stores like a
// field when it replaces the list.
const hasDirective = `variables.lists.exists(f, f in variables.after && (!(f in variables.before) || variables.before[f] != variables.after[f]) &&
  variables.after[f].exists(y, y.exists(k, k.startsWith('$')) ||
    variables.nested.exists(g, g in y && y[g].exists(w, w.exists(k, k.startsWith('$'))))))`

// losesImage is an expression that is true if a container that had an image has none.
const losesImage = `['containers', 'initContainers'].exists(f, f in variables.before && f in variables.after && variables.after[f].exists(y,
  !has(y.image) && has(y.name) && variables.before[f].exists(x, x.name == y.name && has(x.image))))`

// isServerSideApply is an expression that is true for a server-side apply, which gives the manager's entry of operation Apply a
// new time. Within a second of the former apply the time is the same. Then it is decisive that the manager has no entry of
// operation Update: a patch with changes makes one.
const isServerSideApply = `object.metadata.?managedFields.orValue([]).exists(m, m.operation == 'Apply' && m.manager == variables.manager &&
  (!oldObject.metadata.?managedFields.orValue([]).exists(o, o.operation == 'Apply' && o.manager == m.manager && o.?time == m.?time) ||
   !object.metadata.managedFields.exists(u, u.operation == 'Update' && u.manager == m.manager)))`

// holder is an expression for the map that holds the merged lists of an object of any kind of the policy.
func holder(object string) string {
	return fmt.Sprintf(`(request.kind.kind in ['Pod', 'Service'] ? %[1]s.?spec :
  request.kind.kind == 'PodTemplate' ? %[1]s.?template.?spec :
  request.kind.kind == 'CronJob' ? %[1]s.?spec.?jobTemplate.?spec.?template.?spec : %[1]s.?spec.?template.?spec).orValue({})`, object)
}
