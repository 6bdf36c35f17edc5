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

package ownership

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/synchub-dev/synchub/controllers/plan/fieldpath"
)

// Obstacle is a field of a live object that the desired object lacks, so that the API server refuses the apply.
type Obstacle struct {
	Path fieldpath.Path
	// Managers are the other managers that own a part of the field. If there are none, the field has only defaults.
	Managers []string
	// Applied is true if the hub applied a part of the field before.
	Applied bool
}

// Obstacles returns the obstacles among the fields that a refusal names. An apply that omits a field leaves the parts that other
// managers own, and defaults. The refusal may contain the field's path in the server's internal types, so the obstacle may be the
// nearest parent that the live object has. Items of lists are no obstacles: an apply that omits an item removes the whole item.
func Obstacles(desired map[string]any, live *unstructured.Unstructured, manager string, refused []string) (obstacles []Obstacle) {
	var known []string
	for _, field := range refused {
		path, ok := obstaclePath(desired, live.Object, field)
		if !ok || slices.Contains(known, path.String()) {
			continue
		}
		known = append(known, path.String())
		obstacle := Obstacle{Path: path}
		for _, entry := range live.GetManagedFields() {
			switch fields, ok := fieldSetOf(entry); {
			case !ok || entry.Subresource != "" || !path.IsIn(fields):
			case entry.Manager == manager:
				// An entry for an update counts too: an API server records changes by admission in it.
				obstacle.Applied = true
			case !slices.Contains(obstacle.Managers, entry.Manager):
				obstacle.Managers = append(obstacle.Managers, entry.Manager)
			}
		}
		obstacles = append(obstacles, obstacle)
	}
	return obstacles
}

// obstaclePath returns the first field along the refused path that the desired object lacks, if the live object has the field.
func obstaclePath(desired, live map[string]any, refused string) (path fieldpath.Path, ok bool) {
	names := missingPart(desired, refused)
	for _, name := range names {
		below, isLive := live[name]
		if !isLive {
			return path, false
		}
		path = path.Child(name)
		live, _ = below.(map[string]any)
	}
	return path, len(names) > 0
}

// MayHaveObstacles reports whether the desired object lacks any of the fields that a refusal names.
func MayHaveObstacles(desired map[string]any, refused []string) bool {
	return slices.ContainsFunc(refused, func(field string) bool { return len(missingPart(desired, field)) > 0 })
}

// missingPart returns the path, as names, to the first field along the refused path that the desired object lacks. It returns
// none if the object has the field, if the path leads through a list, and for fields that the hub never applies.
func missingPart(desired map[string]any, refused string) []string {
	names := strings.Split(refused, ".")
	if slices.Contains([]string{"", "apiVersion", "kind", "metadata", "status"}, names[0]) {
		return nil
	}
	for index, name := range names {
		wanted, ok := desired[name]
		if !ok && !strings.Contains(name, "[") {
			return names[:index+1]
		}
		if desired, ok = wanted.(map[string]any); !ok {
			return nil
		}
	}
	return nil
}
