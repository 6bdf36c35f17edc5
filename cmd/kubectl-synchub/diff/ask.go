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

package diff

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kcp-dev/logicalcluster/v3"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/explain"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/tenancy"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// askAll asks the clusters about all items, with at most so many requests at once. A cluster that cannot be asked is asked nothing.
func askAll(ctx context.Context, items []*item, concurrency int) ([]outcome, error) {
	for _, it := range items {
		it.expect()
	}
	found := make([][]outcome, len(items))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrency)
	for i, it := range items {
		if it.cluster.err != nil || it.cluster.isDrained() {
			continue
		}
		group.Go(func() error {
			found[i] = it.ask(ctx)
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var all []outcome
	for _, outcomes := range found {
		all = append(all, outcomes...)
	}
	return all, nil
}

// expect announces to the cluster which object will be read.
func (it *item) expect() {
	of := it.after
	if of.object == nil {
		of = it.before
	}
	if it.err != nil || it.cluster.err != nil || of.object == nil {
		return
	}
	facts := it.factsOf(of)
	if ref, err := of.rules.predictor.TargetRef(&facts); err == nil && ref.Resource != "" && ref.Version != "" {
		it.cluster.expect(place{ref.GroupVersionResource, ref.Namespace})
	}
}

// ask returns what the change does to the copies of the object.
func (it *item) ask(ctx context.Context) []outcome {
	if it.err != nil {
		return []outcome{it.problem(nil, it.err.Error())}
	}
	if it.after.object == nil {
		return it.askRemoved(ctx, nil)
	}
	after := it.predict(it.after, nil)
	switch {
	case after.Err != nil:
		return []outcome{it.problem(&after.Ref, after.Err.Error())}
	case after.State == plan.Suspended:
		return []outcome{it.note(&after.Ref, "all that selects it is suspended, so the cluster keeps what it has")}
	case after.State != plan.Selected:
		return it.askRemoved(ctx, nil)
	case it.onlyRules && it.hasSameCopy(after):
		return nil
	}
	live, err := it.read(ctx, after.Ref)
	if err != nil {
		return []outcome{it.unasked(&after.Ref, err)}
	}
	if live != nil {
		after = it.predict(it.after, live)
	}
	present := it.askPresent(ctx, live, after)
	return append([]outcome{present}, it.askRemoved(ctx, &after.Ref)...)
}

// hasSameCopy reports whether the rules make the same copy, and treat it in the same way, before and after the change.
func (it *item) hasSameCopy(after explain.Prediction) bool {
	before := it.beforeAtSamePlace(after)
	return before != nil && before.ReportsDrift == after.Plan.Desired.ReportsDrift && hasSameContent(before, after.Plan.Desired)
}

// isOnlyReported reports whether the hub leaves a copy as it is that differs on the cluster: the change does not concern its content.
func (it *item) isOnlyReported(after explain.Prediction) bool {
	before := it.beforeAtSamePlace(after)
	return before != nil && after.Plan.Desired.ReportsDrift && hasSameContent(before, after.Plan.Desired)
}

// beforeAtSamePlace returns the copy before the change if it has the place of the copy after the change; else nil.
func (it *item) beforeAtSamePlace(after explain.Prediction) *transform.Desired {
	if it.before.object == nil || after.Plan.Desired == nil {
		return nil
	}
	before := it.predict(it.before, nil)
	if before.Err != nil || before.State != plan.Selected || !isSamePlace(before.Ref, after.Ref) {
		return nil
	}
	return before.Plan.Desired
}

// hasSameContent reports whether two copies have the same content.
func hasSameContent(one, other *transform.Desired) bool {
	return reflect.DeepEqual(transform.ComparableContent(one.ForCreate(), nil), transform.ComparableContent(other.ForCreate(), nil)) &&
		reflect.DeepEqual(one.IgnoredFields, other.IgnoredFields)
}

// read returns the object at a place of the cluster, or nil.
func (it *item) read(ctx context.Context, ref explain.TargetRef) (*unstructured.Unstructured, error) {
	resource, err := ref.ResourceOn(it.cluster.reader.Mapper)
	if err != nil {
		return nil, err
	}
	return it.cluster.get(ctx, resource, ref.NamespacedName)
}

// askRemoved returns what happens to the copy of the object as it is before the change, if it does not stay at its place. kept is the
// place of the copy after the change; nil for none.
func (it *item) askRemoved(ctx context.Context, kept *explain.TargetRef) []outcome {
	if it.before.object == nil {
		return nil
	}
	before := it.predict(it.before, nil)
	if before.RefErr != nil || before.Ref.Name == "" || kept != nil && isSamePlace(*kept, before.Ref) {
		return nil
	}
	live, err := it.read(ctx, before.Ref)
	switch {
	case err != nil:
		return []outcome{it.unasked(&before.Ref, err)}
	case live == nil:
		return nil
	}
	before = it.predict(it.before, live)
	if before.Copied == nil || before.State == plan.Unknown {
		return nil
	}
	decision, err := plan.DecideDown(plan.SourceState{State: plan.SourceNotFound, AbsenceVerified: true}, before.Copied, nil)
	switch {
	case err != nil:
		return []outcome{it.problem(&before.Ref, err.Error())}
	case it.staysWithoutSource:
		return []outcome{it.note(&before.Ref, "it stays on the cluster, by the deletion policy of the EdgePlacement")}
	case decision.Action == plan.Delete:
		return []outcome{{cluster: it.cluster, action: Delete, ref: before.Ref, from: content(live, nil)}}
	case decision.Action == plan.Release:
		return []outcome{it.note(&before.Ref, "it stays on the cluster, without the hub's marks")}
	default:
		return []outcome{it.note(&before.Ref, "it stays on the cluster: "+decision.String())}
	}
}

// isSamePlace reports whether two places have the same object, in any version.
func isSamePlace(one, other explain.TargetRef) bool {
	return one.GroupResource() == other.GroupResource() && one.NamespacedName == other.NamespacedName
}

// askPresent returns what happens to an object that belongs on the cluster. live is the object at its place, or nil.
func (it *item) askPresent(ctx context.Context, live *unstructured.Unstructured, p explain.Prediction) outcome {
	decision, desired := p.Plan.Decision, p.Plan.Desired
	switch {
	case p.Err != nil:
		return it.problem(&p.Ref, p.Err.Error())
	case decision.Cause == plan.ExcludedByUpsync:
		return it.note(&p.Ref, "it is selected for upsync from the cluster as well, so it does not go down")
	case desired == nil:
		return it.problem(&p.Ref, "the hub decides nothing about it: "+decision.String())
	case live == nil && it.cluster.syncTarget.Spec.Unschedulable:
		return it.note(&p.Ref, "the SyncTarget is cordoned: the hub makes nothing new there")
	case live == nil:
		return it.askCreated(ctx, p)
	case p.Copied == nil:
		return it.askAdopted(ctx, live, p)
	case decision.Cause == plan.NameTaken:
		return it.problem(&p.Ref, "the cluster has the copy of another object under this name")
	case decision.Cause == plan.Superseded:
		return outcome{cluster: it.cluster, action: Replace, ref: p.Ref, from: content(live, nil), to: content(desired.ForCreate(), nil), note: "the copy of the former object of this name is deleted first"}
	case decision.Cause == plan.BeingDeleted:
		return it.note(&p.Ref, "it is being deleted on the cluster")
	case decision.Cause == plan.Finished, desired.Mark.Policy == ownership.PolicyCreateOnly:
		return outcome{}
	}
	changed := it.askChanged(ctx, live, p)
	if changed.action != "" && it.isOnlyReported(p) {
		return it.note(&p.Ref, "it differs on the cluster, and drift is Report: the hub leaves it as it is (kubectl synchub drift)")
	}
	return changed
}

// askCreated returns the object that the cluster would make.
func (it *item) askCreated(ctx context.Context, p explain.Prediction) outcome {
	created := outcome{cluster: it.cluster, action: Create, ref: p.Ref}
	desired := p.Plan.Desired.ForCreate()
	made, err := it.write(ctx, p, desired)
	switch {
	case isMissingNamespace(err):
		created.note = "the cluster does not have the namespace yet, so neither its defaults nor its admission are shown"
		created.to = content(desired, nil)
	case err != nil:
		return it.failed(p, err)
	default:
		created.to = withoutRandom(content(made, nil), desired, string(made.GetUID()))
	}
	return created
}

// isMissingNamespace reports whether an object cannot be made because its namespace does not exist.
func isMissingNamespace(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && apierrors.IsNotFound(err) && status.ErrStatus.Details != nil && status.ErrStatus.Details.Kind == "namespaces"
}

// askAdopted returns what happens to an object that the hub does not own.
func (it *item) askAdopted(ctx context.Context, live *unstructured.Unstructured, p explain.Prediction) outcome {
	policies := []synchubv1alpha1.AdoptionPolicy{p.Resource.Adoption}
	if adoption := it.cluster.syncTarget.Spec.Adoption; adoption != "" {
		policies = append(policies, synchubv1alpha1.AdoptionPolicy(adoption))
	}
	adoption := plan.DecideAdoption(live, p.NotOwnedErr, policies...)
	const taken = "the cluster has an object of this name that is not the hub's, so the hub leaves it alone: see spec.adoption of the PublishedResource or of the SyncTarget"
	if adoption == plan.NotAdopted {
		return it.problem(&p.Ref, taken)
	}
	changed := it.askChanged(ctx, live, p)
	if adoption == plan.AdoptedIfIdentical && changed.action != "" {
		return it.problem(&p.Ref, taken)
	}
	switch {
	case changed.action != "" && p.Plan.Desired.ReportsDrift:
		changed.note = "the hub takes the object over once drift is Repair"
	case changed.action != "":
		changed.note = "the hub takes the object over"
	}
	return changed
}

// askChanged returns how an object of the cluster changes.
func (it *item) askChanged(ctx context.Context, live *unstructured.Unstructured, p explain.Prediction) outcome {
	desired := p.Plan.Desired.ForCopy(live.GetUID())
	applied := desired.Object.DeepCopy()
	applied.SetUID(live.GetUID())
	merged, err := it.write(ctx, p, applied)
	changed := outcome{cluster: it.cluster, action: Update, ref: p.Ref, from: content(live, desired.IgnoredFields)}
	switch {
	case apierrors.IsInvalid(err) && p.Resource.Replace && strings.Contains(err.Error(), "immutable"):
		changed.action, changed.note = Replace, "it changes immutable fields, so the hub deletes it and makes it again"
		changed.to = content(desired.Object, desired.IgnoredFields)
		return changed
	case err != nil:
		return it.failed(p, err)
	}
	changed.to = content(merged, desired.IgnoredFields)
	if reflect.DeepEqual(changed.from, changed.to) {
		return outcome{}
	}
	return changed
}

// write makes a dry run of the hub's write, as the user that the hub impersonates for the object.
func (it *item) write(ctx context.Context, p explain.Prediction, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	resource, err := p.Ref.ResourceOn(it.cluster.reader.Mapper)
	if err != nil {
		return nil, err
	}
	identities := tenancy.IdentitiesOf(it.cluster.syncTarget.Spec.Tenancy)
	user := identities.User(resource.GroupResource(), logicalcluster.Name(p.Plan.Desired.Identity.Workspace))
	return it.cluster.dryRun(ctx, resource, object, ownership.FieldManager(p.Owner.Hub), user)
}

// missingRight matches the error of an API server for a user without the right to a request.
var missingRight = regexp.MustCompile(`User ".*" cannot `)

// failed returns the outcome for an error of a dry run.
func (it *item) failed(p explain.Prediction, err error) outcome {
	// Quotas, Pod Security and webhooks forbid an object too.
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsConflict(err) || apierrors.IsForbidden(err) && !missingRight.MatchString(err.Error()) {
		return it.problem(&p.Ref, "the cluster refuses it: "+err.Error())
	}
	return it.unasked(&p.Ref, err)
}

func (it *item) note(ref *explain.TargetRef, text string) outcome {
	return outcome{cluster: it.cluster, ref: it.place(ref), note: text}
}

func (it *item) problem(ref *explain.TargetRef, text string) outcome {
	return outcome{cluster: it.cluster, ref: it.place(ref), problem: text}
}

func (it *item) unasked(ref *explain.TargetRef, err error) outcome {
	return it.problem(ref, fmt.Sprintf("the cluster cannot be asked: %v", err))
}

// place returns the place of the object on the cluster, or its name in the mailbox if that is unknown.
func (it *item) place(ref *explain.TargetRef) explain.TargetRef {
	if ref != nil && ref.Name != "" {
		return *ref
	}
	of := it.after
	if of.rules == nil {
		of = it.before
	}
	named := explain.TargetRef{NamespacedName: it.key}
	if of.rules != nil {
		named.Resource, named.Group = of.rules.facts.Resource.Resource, of.rules.facts.Resource.Group
		if of.object != nil {
			named.Kind = of.object.GetKind()
		}
	}
	return named
}
