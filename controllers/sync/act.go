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

package sync

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/sync/decide"
	"github.com/synchub-dev/synchub/controllers/sync/ownership"
	"github.com/synchub-dev/synchub/controllers/sync/transform"
	"github.com/synchub-dev/synchub/provider/requests"
	"github.com/synchub-dev/synchub/provider/targets"
)

// create makes the desired object. A namespace that is missing is ensured first. If the name is taken, the object there
// is read once: it may be ours, without its label, or one that may be adopted.
func (c *Controller) create(ctx context.Context, here placed, desired *transform.Desired) error {
	if c.isCordoned() {
		return errCordoned
	}
	at := here.at()
	c.onTarget.begin(at)
	created, err := c.Connection.Create(ctx, here.side.GroupVersionResource, desired.First())
	if isMissingNamespace(err, here.key.Namespace) {
		extra := requests.As(ctx, requests.Extra)
		if err := c.Connection.EnsureNamespace(extra, here.key.Namespace, map[string]string{ownership.EnsuredAnnotation: c.Owner.EnsuredValue(namespaceOf(here.key.Namespace))}); err != nil {
			c.onTarget.wrote(at, nil)
			return fmt.Errorf("cannot create the namespace %s: %w", here.key.Namespace, err)
		}
		created, err = c.Connection.Create(extra, here.side.GroupVersionResource, desired.First())
	}
	if errors.Is(err, targets.ErrExists) {
		c.onTarget.wrote(at, nil)
		return c.reclaim(requests.As(ctx, requests.Extra), here, desired, err)
	}
	if err != nil {
		c.onTarget.wrote(at, nil)
		return err
	}
	return c.remember(at, created, desired.Object)
}

// apply brings an object of ours, which has the UID, in step. One that cannot be changed is replaced where that is allowed.
func (c *Controller) apply(ctx context.Context, here placed, desired *transform.Desired, uid types.UID) error {
	err := c.change(ctx, here, desired, uid)
	if refused, ok := errors.AsType[*immutableError](err); ok {
		return c.replace(ctx, here, desired, uid, refused)
	}
	return err
}

// change applies to the object that has the UID, and never replaces it: it need not be ours yet.
func (c *Controller) change(ctx context.Context, here placed, desired *transform.Desired, uid types.UID) error {
	if err := c.surrender(ctx, here, desired, uid); err != nil {
		return err
	}
	at := here.at()
	c.onTarget.begin(at)
	applied, err := c.applyAcrossVersions(ctx, here, desired, uid)
	if err != nil {
		c.onTarget.wrote(at, nil)
		return explained(err)
	}
	return c.remember(at, applied, desired.Object)
}

// replace deletes an object of which a field cannot be changed, so that it is created anew when it is gone. The target
// must first have said that the new one is valid.
func (c *Controller) replace(ctx context.Context, here placed, desired *transform.Desired, uid types.UID, refused *immutableError) error {
	if !c.Resource.Replace || c.Resource.Container {
		return refused
	}
	if c.isCordoned() {
		return fmt.Errorf("%w; it is not replaced: %w", refused, errCordoned)
	}
	ctx = requests.As(ctx, requests.Extra)
	if err := c.Connection.DryRunCreate(ctx, here.side.GroupVersionResource, desired.First()); err != nil {
		return fmt.Errorf("%w; it was not replaced, since the target refuses the new one as well: %w", refused, err)
	}
	return c.delete(ctx, here, uid)
}

// remark brings the marks of an object in step that is to be left alone otherwise. They keep the hash of what was last
// applied.
func (c *Controller) remark(ctx context.Context, here placed, desired *transform.Desired, observed *decide.Observed) error {
	mark := desired.Mark
	mark.Hash, mark.Adopted = observed.Mark.Hash, observed.Mark.Adopted
	return c.edit(ctx, here, observed.UID, targets.Edits{
		SetLabels:      map[string]string{ownership.OwnerLabel: c.Owner.LabelValue()},
		SetAnnotations: map[string]string{ownership.MarkAnnotation: c.Owner.Seal(mark), ownership.OverwriteAnnotation: "false"},
	})
}

// thaw takes off what remark said on an object that is not to be left alone any more: an apply without the annotation does
// not remove it, since it was not applied.
func (c *Controller) thaw(ctx context.Context, here placed, desired *transform.Desired) error {
	if _, ok := desired.Object.GetAnnotations()[ownership.OverwriteAnnotation]; ok {
		return nil
	}
	extra := requests.As(ctx, requests.Extra)
	return c.Connection.Strip(extra, here.side.GroupVersionResource, here.key, here.observed.UID, nil, []string{ownership.OverwriteAnnotation})
}

func (c *Controller) edit(ctx context.Context, here placed, uid types.UID, edits targets.Edits) error {
	at := here.at()
	c.onTarget.begin(at)
	edited, err := c.Connection.Edit(ctx, here.side.GroupVersionResource, here.key, uid, edits)
	if err != nil {
		c.onTarget.wrote(at, nil)
		return err
	}
	c.onTarget.wrote(at, c.stripped(edited))
	return nil
}

// remember keeps the target's answer until the cache shows it, and notes which of the desired paths the target did not
// keep, so that they are not taken for drift for ever.
func (c *Controller) remember(at place, answer, desired *unstructured.Unstructured) error {
	kept := c.stripped(answer)
	c.onTarget.wrote(at, kept)
	observed, err := c.verify(kept)
	if err != nil {
		return fmt.Errorf("the target did not keep the hub's mark: %w", err)
	}
	dropped, err := ownership.Uncovered(desired.Object, observed.Fields)
	if err != nil {
		return err
	}
	c.onTarget.setDropped(at, dropped)
	return nil
}

func (c *Controller) delete(ctx context.Context, here placed, uid types.UID) error {
	at := here.at()
	c.onTarget.begin(at)
	if err := c.Connection.Delete(ctx, here.side.GroupVersionResource, here.key, uid); err != nil {
		c.onTarget.wrote(at, nil)
		return err
	}
	c.onTarget.deleted(at, uid)
	return nil
}

// release takes the marks off an object, which stays.
func (c *Controller) release(ctx context.Context, here placed) error {
	at, observed := here.at(), here.observed
	labels, annotations := c.Owner.Traces(here.object.GetLabels(), here.object.GetAnnotations())
	edits := targets.Edits{RemoveLabels: labels, RemoveAnnotations: annotations}
	if mayReturn(observed.Mark) {
		edits.SetAnnotations = map[string]string{ownership.EnsuredAnnotation: c.Owner.EnsuredValue(observed.Mark.Self)}
	}
	c.onTarget.begin(at)
	if _, err := c.Connection.Edit(ctx, here.side.GroupVersionResource, here.key, observed.UID, edits); err != nil && !apierrors.IsNotFound(err) {
		c.onTarget.wrote(at, nil)
		return err
	}
	c.onTarget.deleted(at, observed.UID)
	return nil
}

// mayReturn tells whether an object that is let go remains one that the hub made: it was to be deleted, and stays only because
// its end would be that of others. When its source is made again, it is taken back. Of what was to be left nothing of the hub
// remains, nor of what others had made: what let the hub adopt that lets it again.
func mayReturn(mark ownership.Mark) bool {
	return mark.Policy == ownership.PolicyDelete && !mark.Adopted
}

// namespaceOf is how marks name a namespace.
func namespaceOf(name string) ownership.Self { return ownership.Self{Kind: "Namespace", Name: name} }

// isMissingNamespace tells whether a create failed because its namespace does not exist.
func isMissingNamespace(err error, namespace string) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Kind == "namespaces" && details.Name == namespace
}
