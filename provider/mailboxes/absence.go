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

package mailboxes

import (
	"context"
	"fmt"
	"time"

	kcpcache "github.com/kcp-dev/apimachinery/v2/pkg/cache"
	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/synchub-dev/synchub/provider/mailboxes/absence"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
)

// absenceVerifier is an [absence.Verifier]. In tests it records the calls of the caches.
type absenceVerifier interface {
	Verify(ctx context.Context, mailbox logicalcluster.Name, candidate absence.Candidate)
	HasVerified(mailbox logicalcluster.Name, candidate absence.Candidate) bool
	TakeVerified(mailbox logicalcluster.Name, candidate absence.Candidate) bool
	WasRebound(mailbox logicalcluster.Name) bool
	HiddenObjects(mailbox logicalcluster.Name) absence.HiddenObjects
	Pending() (count int, since time.Time)
	ObserveBinding(mailbox logicalcluster.Name, resourceVersion string)
	Clear(mailbox logicalcluster.Name, candidate absence.Candidate)
	RequireRelist(mailbox logicalcluster.Name, resource schema.GroupVersionResource)
	NoteWitness(mailbox logicalcluster.Name, resource schema.GroupVersionResource, witness absence.Witness)
	ForgetMailbox(mailbox logicalcluster.Name)
	ForgetResource(resource schema.GroupVersionResource)
	Wait()
}

// Absences verifies that objects are absent.
type Absences struct {
	endpoints *Endpoints
	verifier  absenceVerifier
}

func newAbsences(options *Options, caches *Caches, subscriptions *Subscriptions) *Absences {
	cache := absenceCache{Caches: caches, subscriptions: subscriptions}
	return &Absences{endpoints: caches.endpoints, verifier: absence.New(cache, options.AbsenceDelays, options.Clock, options.Log)}
}

// VerifyAbsence starts the verification of a candidate. The subscribers' OnAbsenceDecided follows when the absence is
// verified, or the object exists. Before [Mailboxes.Start] the candidate is only recorded. Candidates of unwatched resources
// are ignored.
func (a *Absences) VerifyAbsence(mailbox logicalcluster.Name, candidate absence.Candidate) {
	a.endpoints.callIfWatched(candidate.Resource, func(ctx context.Context) { a.verifier.Verify(ctx, mailbox, candidate) })
}

// HasVerifiedAbsence reports whether the absence is verified. [Absences.TakeVerifiedAbsence] uses the verification up.
func (a *Absences) HasVerifiedAbsence(mailbox logicalcluster.Name, candidate absence.Candidate) bool {
	return a.verifier.HasVerified(mailbox, candidate)
}

// TakeVerifiedAbsence reports whether the absence was verified since the object was last visible. Each verification counts once.
func (a *Absences) TakeVerifiedAbsence(mailbox logicalcluster.Name, candidate absence.Candidate) bool {
	return a.verifier.TakeVerified(mailbox, candidate)
}

// WasRebound reports whether a verification has found that the mailbox was bound again. Then no missing object counts as
// deleted.
func (a *Absences) WasRebound(mailbox logicalcluster.Name) bool {
	return a.verifier.WasRebound(mailbox)
}

// HiddenObjects returns the objects that the last verification found in the mailbox although kcp does not show them to the hub.
func (a *Absences) HiddenObjects(mailbox logicalcluster.Name) absence.HiddenObjects {
	return a.verifier.HiddenObjects(mailbox)
}

// absenceCache implements [absence.Cache].
type absenceCache struct {
	*Caches
	subscriptions *Subscriptions
}

func (c absenceCache) EndpointOf(mailbox logicalcluster.Name) (found absence.MailboxEndpoint, ok bool) {
	endpoint := c.endpoints.locate(mailbox)
	if endpoint == nil {
		return absence.MailboxEndpoint{}, false
	}
	binding := endpoint.binding(mailbox)
	if binding == nil {
		return absence.MailboxEndpoint{}, false
	}
	return absence.MailboxEndpoint{Endpoint: endpoint, Client: endpoint.clientFor(mailbox), Binding: binding.GetName(), BindLater: c.options.BindLater}, true
}

func (c absenceCache) WorkspaceClient(mailbox logicalcluster.Name) (dynamic.Interface, error) {
	client, err := dynamic.NewForConfig(c.options.Access.ConfigFor(c.options.Access.Host()+"/clusters/"+mailbox.String(), requestmetrics.Mailbox))
	if err != nil {
		return nil, fmt.Errorf("cannot make a client for the mailbox %s: %w", mailbox, err)
	}
	return client, nil
}

func (c absenceCache) IsIncomplete(mailbox logicalcluster.Name) bool {
	return c.usages.isEvicted(mailbox, false) || c.usages.isEvicted(mailbox, true) || c.owned.isUnknown(mailbox)
}

func (c absenceCache) Contains(resource schema.GroupVersionResource, mailbox logicalcluster.Name, key types.NamespacedName) (contained, known bool) {
	_, state := c.Get(resource, mailbox, key)
	return state == Present, state != Unknown
}

func (c absenceCache) CountObjects(mailbox logicalcluster.Name) (count int) {
	for _, resource := range c.endpoints.watchedResources() {
		informer, ok := c.informer(resource, mailbox)
		if !ok || resource == bindingsResource {
			continue
		}
		keys, _ := informer.GetIndexer().IndexKeys(kcpcache.ClusterIndexName, kcpcache.ClusterIndexKey(mailbox))
		count += len(keys)
	}
	return count
}

func (c absenceCache) OnAbsenceDecided(mailbox logicalcluster.Name, candidate absence.Candidate) {
	for _, subscription := range c.subscriptions.get(subscriptionKey{candidate.Resource, mailbox}) {
		subscription.OnAbsenceDecided(candidate.Key)
	}
	if observer := c.subscriptions.observer.Load(); observer != nil {
		observer.OnAbsenceDecided(candidate.Resource, mailbox, candidate.Key)
	}
}

func (c absenceCache) OnRebound(mailbox logicalcluster.Name) { c.subscriptions.resetMailbox(mailbox) }

// missingCandidate returns the absence candidate for an object that the cache lacks.
func missingCandidate(resource schema.GroupVersionResource, object *unstructured.Unstructured) absence.Candidate {
	return absence.Candidate{Resource: resource, Key: keyOf(object), Missing: true}
}
