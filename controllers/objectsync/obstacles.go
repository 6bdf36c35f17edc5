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

package objectsync

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/synchub-dev/synchub/controllers/internal/status"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/fieldpath"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/provider/requestclass"
)

// obstructedError means that the target refuses the object because of fields that the object lacks and another manager owns on
// the target.
type obstructedError struct {
	obstacles []ownership.Obstacle
	err       error
}

func (e *obstructedError) Error() string {
	var texts []string
	for _, obstacle := range e.obstacles {
		texts = append(texts, fmt.Sprintf("%s, which %s keeps there", obstacle.Path, strings.Join(obstacle.Managers, ", ")))
	}
	return fmt.Sprintf("the target refuses the object because of fields that it does not have: %s. Have the manager give the field up, remove it on the target, or set it in the mailbox: %v", strings.Join(texts, "; "), e.err)
}

func (e *obstructedError) Unwrap() error { return e.err }

// applyWithoutObstacles applies an object again if the target refused it because of fields that only the copy has. It first takes
// over the ownership of these fields, so that the apply removes them: parts of a field that the hub applied before, and defaults.
// Other managers may own such parts, like the caBundle below a conversion that the source no longer has. It returns the refusal
// if there are no such fields.
func (w *targetWriter) applyWithoutObstacles(ctx context.Context, current plan.Copy, desired *transform.Desired, uid types.UID, refusal error) (*unstructured.Unstructured, error) {
	refused := refusedFields(refusal)
	if !ownership.MayHaveObstacles(desired.Object.Object, refused) {
		return nil, refusal
	}
	live, err := w.objects.Get(ctx, current.API.GroupVersionResource, current.Key)
	if err != nil || live.GetUID() != uid {
		return nil, refusal
	}
	obstacles := ownership.Obstacles(desired.Object.Object, live, w.fieldManager, refused)
	obstacles = slices.DeleteFunc(obstacles, func(obstacle ownership.Obstacle) bool {
		return slices.ContainsFunc(desired.IgnoredFields, func(field transform.IgnoredField) bool { return field.Path.Overlaps(obstacle.Path) })
	})
	if len(obstacles) == 0 {
		return nil, refusal
	}
	if kept := slices.DeleteFunc(slices.Clone(obstacles), mayTake); len(kept) > 0 {
		return nil, &obstructedError{kept, refusal}
	}
	var paths []fieldpath.Path
	for _, obstacle := range obstacles {
		paths = append(paths, obstacle.Path)
	}
	entries, changed := ownership.TakeFields(live.GetManagedFields(), w.fieldManager, paths)
	if !changed {
		return nil, refusal
	}
	if err := w.replaceManagedFields(ctx, current, uid, live, entries); errors.Is(err, errOutdated) {
		return nil, err
	} else if err != nil {
		return nil, errors.Join(refusal, fmt.Errorf("cannot take over the fields %v, which are in the way: %w", paths, err))
	}
	return w.objects.Apply(ctx, current.API.GroupVersionResource, desired.Object, uid)
}

// mayTake reports whether the hub may remove an obstacle: the hub applied a part of it, or no other manager owns a part.
func mayTake(obstacle ownership.Obstacle) bool {
	return obstacle.Applied || len(obstacle.Managers) == 0
}

// refusedFields returns the fields for which the target's API server refused an object; none for a refusal of another kind.
func refusedFields(err error) (fields []string) {
	if _, immutable := errors.AsType[*immutableError](err); immutable || isAdmissionDenied(err) {
		return nil
	}
	for _, cause := range invalidCauses(err) {
		fields = append(fields, cause.Field)
	}
	return fields
}

// reportKeptFields writes an event about fields that the mailbox object no longer has, and that stay on the target because other
// managers own a part of them. They are no failure: server-side apply leaves such fields to their managers.
func (w *targetWriter) reportKeptFields(ctx context.Context, current plan.Copy, desired *transform.Desired, applied *unstructured.Unstructured) {
	if current.Observed == nil || w.reporter == nil {
		return
	}
	kept, err := ownership.KeptFields(current.Observed.AppliedFields, applied, w.fieldManager)
	if err != nil {
		log.FromContext(ctx).Info("cannot find out which fields stay on the target", "error", err.Error())
		return
	}
	var texts []string
	for _, field := range kept {
		path := strings.TrimPrefix(field.Path.String(), ".")
		if !slices.ContainsFunc(desired.IgnoredFields, func(ignored transform.IgnoredField) bool { return ignored.Path.OverlapsField(field.Path) }) {
			texts = append(texts, fmt.Sprintf("%s, which %s keeps", path, strings.Join(field.Managers, ", ")))
		}
	}
	if len(texts) == 0 {
		return
	}
	w.reporter.warn(requestclass.With(ctx, requestclass.Extra), sourceKey(desired.Mark), Failure{
		Reason: plan.ReasonFieldsKept, Message: status.Truncate("These fields are not in the mailbox any more, and stay on the target: " + strings.Join(texts, "; ")),
	})
}
