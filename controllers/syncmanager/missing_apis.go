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

package syncmanager

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/internal/status"
	"github.com/synchub-dev/synchub/controllers/syncmanager/namelock"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/wording"
)

const (
	// clearNamesInterval is how often the hub tries to free names of a mailbox while some are in conflict.
	clearNamesInterval = 15 * time.Second
	// maxRebindInterval is the longest interval between attempts to make kcp bind again. The first attempt follows after
	// clearNamesInterval; the interval doubles each time, because a changed binding has all objects of the mailbox reconciled.
	maxRebindInterval = 10 * time.Minute
	// maxNamedAPIs is how many missing APIs a message names.
	maxNamedAPIs = 20
)

// MissingAPIs are the published APIs that a mailbox lacks because kcp does not bind them. The zero value means
// none.
type MissingAPIs struct {
	Resources []schema.GroupResource
	// Message names the APIs, the cause and the remedy.
	Message string
}

// Has reports whether the mailbox lacks the resource.
func (a MissingAPIs) Has(resource schema.GroupResource) bool {
	return slices.Contains(a.Resources, resource)
}

func (a MissingAPIs) equal(other MissingAPIs) bool {
	return a.Message == other.Message && slices.Equal(a.Resources, other.Resources)
}

// NameReleaser frees names of APIs in mailboxes. [namelock.Releaser] implements it.
type NameReleaser interface {
	Release(ctx context.Context, mailbox logicalcluster.Name, missing []schema.GroupResource) (namelock.Result, error)
	RetryBinding(ctx context.Context, mailbox logicalcluster.Name, binding string, now time.Time) error
}

var _ NameReleaser = &namelock.Releaser{}

// nameClearing is the state of the attempts to resolve the naming conflicts of a mailbox.
type nameClearing struct {
	finding namelock.Result
	// forbidden is why the hub may not free the names, empty if it may.
	forbidden string
	// nextCheck is when to try again to free names, rebindAt when to make kcp bind again, and rebindBackoff the last interval
	// between attempts to rebind.
	nextCheck, rebindAt time.Time
	rebindBackoff       time.Duration
}

// updateMissingAPIs determines which APIs the mailbox lacks, and frees their names where that is safe. It returns when to try again,
// zero if only after an event.
func (p *pass) updateMissingAPIs(ctx context.Context) (requeueAfter time.Duration) {
	all, mailbox := p.manager.Mailboxes, p.target.Mailbox
	conflict, known := all.NamingConflict(mailbox)
	if !known || p.publication == 0 {
		return 0
	}
	var missing MissingAPIs
	if conflict != nil {
		for _, resource := range p.published {
			if resource.Exported && !resource.Unpublishing && all.IsKnownNotServed(mailbox, resource.GroupResource()) {
				missing.Resources = append(missing.Resources, resource.GroupResource())
			}
		}
	}
	if len(missing.Resources) == 0 {
		p.state.nameClearing = nameClearing{}
	} else {
		requeueAfter = p.releaseNames(ctx, missing.Resources, conflict)
		missing.Message = missingAPIsMessage(missing.Resources, conflict.Message, p.state.nameClearing)
	}
	if p.state.setMissingAPIs(missing) {
		p.manager.ObjectsChanged.Publish(p.target.UID)
		p.manager.StateChanged.Publish(p.target.UID)
	}
	return requeueAfter
}

// releaseNames frees names if that is due, and returns when it is due next; zero without a NameReleaser.
func (p *pass) releaseNames(ctx context.Context, missing []schema.GroupResource, conflict *mailboxes.NamingConflict) (requeueAfter time.Duration) {
	names := p.manager.NameReleaser
	if names == nil {
		return 0
	}
	now, clearing := p.manager.Clock.Now(), &p.state.nameClearing
	if wait := clearing.nextCheck.Sub(now); wait > 0 {
		return wait
	}
	found, err := names.Release(ctx, p.target.Mailbox, missing)
	isFree := err == nil && len(found.BlockingCRDs) == 0 && !found.Freed
	switch wasBlocked := len(clearing.finding.BlockingCRDs) > 0; {
	case isFree && (wasBlocked || !clearing.rebindAt.IsZero() && !now.Before(clearing.rebindAt)):
		err = names.RetryBinding(ctx, p.target.Mailbox, conflict.Binding, now)
		clearing.rebindBackoff = min(max(2*clearing.rebindBackoff, clearNamesInterval), maxRebindInterval)
		clearing.rebindAt = now.Add(clearing.rebindBackoff)
	case isFree && clearing.rebindAt.IsZero():
		clearing.rebindAt = now.Add(clearNamesInterval)
	case !isFree:
		clearing.rebindAt, clearing.rebindBackoff = time.Time{}, 0
	}
	clearing.nextCheck, clearing.finding, clearing.forbidden = now.Add(clearNamesInterval), found, ""
	if apierrors.IsForbidden(err) {
		clearing.forbidden = err.Error()
	}
	log := p.manager.Log.WithValues("syncTarget", p.target.Name, "mailbox", p.target.Mailbox)
	if err != nil {
		log.Info("cannot free the names of APIs in a mailbox, this is tried again", "error", err.Error())
	}
	if found.Freed {
		log.Info("freed names of APIs that kcp kept in a mailbox", "resources", missing)
	}
	return clearNamesInterval
}

// missingAPIsMessage returns which APIs a mailbox lacks, why, and how a user can fix that.
func missingAPIsMessage(resources []schema.GroupResource, conflict string, state nameClearing) string {
	var names []string
	for _, resource := range resources {
		names = append(names, resource.String())
	}
	slices.Sort(names)
	text := fmt.Sprintf("The mailbox does not have %s: kcp does not bind an API if one of its names is taken there.", wording.First(maxNamedAPIs, names))
	crds := strings.Join(state.finding.BlockingCRDs, ", ")
	switch {
	case state.forbidden != "":
		return text + fmt.Sprintf(" The hub may not free the name: %s. Delete the CustomResourceDefinition of that name in the mailbox; then remove the name from the annotation %s "+
			"of the LogicalCluster \"cluster\" there.", status.Truncate(state.forbidden), namelock.Annotation)
	case crds != "":
		return text + fmt.Sprintf(" Delete the CustomResourceDefinition %s in the mailbox, after saving its objects, which go with it. The hub then frees the name.", crds)
	default:
		return text + fmt.Sprintf(" kcp reports: %s. Delete the object with that name in the mailbox; the hub then makes kcp try again.", status.Truncate(strings.TrimSuffix(conflict, ".")))
	}
}
