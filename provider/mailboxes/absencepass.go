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
	"errors"
	"fmt"
	"time"

	kcpcache "github.com/kcp-dev/apimachinery/v2/pkg/cache"
	"github.com/kcp-dev/logicalcluster/v3"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
	"github.com/synchub-dev/synchub/provider/transport"
)

// runPass verifies the candidates of a mailbox together, as far as that is possible now, and returns when to go on.
func (p *absenceVerifier) runPass(ctx context.Context, mailbox logicalcluster.Name, candidates []AbsenceCandidate) (passResult, time.Duration) {
	ctx, cancel := context.WithTimeout(requestmetrics.WithClass(ctx, requestmetrics.Extra), passTimeout)
	defer cancel()
	log := p.log.WithValues("mailbox", mailbox, "suspects", len(candidates))

	if p.mailboxes.isEvicted(mailbox, false) || p.mailboxes.isEvicted(mailbox, true) {
		log.V(1).Info("nothing can be proven while nothing of the mailbox is held")
		return passResult{}, retryInterval
	}
	bound, err := p.readBoundMailbox(ctx, mailbox)
	if errors.Is(err, errRebound) {
		if p.markRebound(mailbox) {
			log.Info("nothing will be proven", "reason", err.Error())
			p.mailboxes.notifyMailboxReset(mailbox)
		}
		return passResult{}, reboundRetryInterval
	}
	if err != nil {
		log.Info("nothing can be proven now", "reason", err.Error())
		return passResult{}, retryInterval
	}
	result := verifiedWithoutList(candidates)
	missing, count := groupMissing(bound.binding, candidates)
	if count == 0 {
		return result, retryInterval
	}
	version := bound.binding.ResourceVersion
	p.observeBinding(mailbox, version)
	if remaining := p.delays.BindingSettle - p.clock.Since(p.bindingUnchangedSince(mailbox)); remaining > 0 {
		log.V(1).Info("the binding changed a moment ago", "wait", remaining)
		return result, remaining
	}
	many := p.isMassDeletion(mailbox, count)
	found, listed, err := p.verifyMissing(ctx, bound, mailbox, missing, many)
	delay := retryInterval
	if err != nil {
		log.Info("not all can be proven now", "reason", err.Error())
		delay = p.delays.BindingSettle
	}
	if listed {
		// The lists count only if the binding did not change meanwhile.
		if err := p.checkUnchanged(ctx, mailbox, bound); err != nil {
			log.Info("nothing can be proven now", "reason", err.Error())
			return result, p.delays.BindingSettle
		}
	}
	result.cleared = found.cleared
	if many && len(found.verified) > 0 && !p.isMassConfirmed(mailbox, version) {
		log.Info("many objects vanished at once: they are proven again before anything is deleted", "wait", p.delays.MassDeletion)
		return result, p.delays.MassDeletion
	}
	result.verified = append(result.verified, found.verified...)
	return result, delay
}

// groupMissing returns the missing candidates by resource. Candidates of a resource that the mailbox does not serve left the
// watch with their claim; they stay pending until the mailbox serves the resource again.
func groupMissing(binding *apisv1alpha2.APIBinding, candidates []AbsenceCandidate) (missing map[schema.GroupVersionResource][]AbsenceCandidate, count int) {
	missing = map[schema.GroupVersionResource][]AbsenceCandidate{}
	for _, candidate := range candidates {
		if candidate.Missing && servesResource(binding, candidate.Resource.GroupResource()) {
			missing[candidate.Resource] = append(missing[candidate.Resource], candidate)
			count++
		}
	}
	return missing, count
}

// verifyMissing verifies the missing candidates of each resource; one that cannot be listed holds up no other. A cache that is
// in sync under this binding is believed unless a relist is required, else the resource is listed.
func (p *absenceVerifier) verifyMissing(ctx context.Context, bound *boundMailbox, mailbox logicalcluster.Name, missing map[schema.GroupVersionResource][]AbsenceCandidate, always bool) (result passResult, listed bool, err error) {
	var errs []error
	for resource, candidates := range missing {
		var found passResult
		var failure error
		if !always && p.isCacheVerified(mailbox, resource, bound.binding.ResourceVersion) {
			found, failure = p.verifyByCache(mailbox, candidates)
		} else {
			listed = true
			found, failure = p.verifyByList(ctx, bound, mailbox, resource, candidates)
		}
		if failure != nil {
			errs = append(errs, fmt.Errorf("%s: %w", resource.Resource, failure))
		}
		result.verified, result.cleared = append(result.verified, found.verified...), append(result.cleared, found.cleared...)
		result.hidden = append(result.hidden, found.hidden...)
	}
	p.setHidden(mailbox, result.hidden)
	return result, listed, errors.Join(errs...)
}

var errNoCache = errors.New("there is no cache of it")

// verifyByCache verifies against the cache. It may hold a candidate: the object may have come back before the candidate was
// noted, so that nothing cleared it.
func (p *absenceVerifier) verifyByCache(mailbox logicalcluster.Name, candidates []AbsenceCandidate) (result passResult, err error) {
	for _, candidate := range candidates {
		_, state := p.mailboxes.Get(candidate.Resource, mailbox, candidate.Key)
		if state == Unknown {
			return passResult{}, errNoCache
		}
		result.add(candidate, state == Present)
	}
	return result, nil
}

// verifyByList verifies against a list. A list through the virtual workspace lacks objects that a claim hides: kcp labels the
// objects of a claimed resource one by one, and after quick changes of claims it has left one unlabelled for long after the
// binding reported success. So claimed resources are listed in the workspace itself, if the hub may. An object that exists
// there and is not shown to the hub is neither absent nor visible: it stays a candidate.
func (p *absenceVerifier) verifyByList(ctx context.Context, bound *boundMailbox, mailbox logicalcluster.Name, resource schema.GroupVersionResource, candidates []AbsenceCandidate) (result passResult, err error) {
	client, selector, direct := bound.client, "", false
	if claim := appliedClaim(bound.binding, resource.GroupResource()); claim != nil {
		if selector, err = claimSelector(claim); err != nil {
			return passResult{}, err
		}
		if client, err = p.workspaceClient(mailbox); err != nil {
			return passResult{}, err
		}
		direct = true
	}
	keys, inStep, err := p.listKeys(ctx, client, mailbox, resource, selector, bound.binding.ResourceVersion)
	if direct && (apierrors.IsForbidden(err) || apierrors.IsNotFound(err)) {
		// The hub may lack permissions there, and its kubeconfig may not reach all shards.
		direct = false
		keys, inStep, err = p.listKeys(ctx, bound.client, mailbox, resource, "", bound.binding.ResourceVersion)
	}
	if err != nil {
		return passResult{}, err
	}
	for _, candidate := range candidates {
		if candidate.Key == AllObjects && !inStep {
			return passResult{}, errCacheBehind
		}
		if direct && keys[candidate.Key] && !p.isCached(mailbox, candidate) {
			result.hidden = append(result.hidden, candidate)
			continue
		}
		result.add(candidate, keys[candidate.Key])
	}
	if hidden := len(result.hidden); hidden > 0 {
		return result, fmt.Errorf("%d objects are there that kcp does not show to the hub", hidden)
	}
	return result, nil
}

func (p *absenceVerifier) isCached(mailbox logicalcluster.Name, candidate AbsenceCandidate) bool {
	_, state := p.mailboxes.Get(candidate.Resource, mailbox, candidate.Key)
	return state == Present
}

// errCacheBehind means that a cache lacks objects of a list.
var errCacheBehind = errors.New("the cache does not hold all of it yet")

// verifiedWithoutList returns the result for candidates that need no list.
func verifiedWithoutList(candidates []AbsenceCandidate) (result passResult) {
	for _, candidate := range candidates {
		if !candidate.Missing {
			result.verified = append(result.verified, candidate)
		}
	}
	return result
}

// listKeys returns the keys of all objects of the resource in the mailbox that the selector matches, by a list. If the cache
// holds them all, it is in sync under this binding.
func (p *absenceVerifier) listKeys(ctx context.Context, client dynamic.Interface, mailbox logicalcluster.Name, resource schema.GroupVersionResource, selector, bindingVersion string) (listed map[types.NamespacedName]bool, inStep bool, err error) {
	const pageSize = 500
	listed, inStep = map[types.NamespacedName]bool{}, true
	options := metav1.ListOptions{LabelSelector: selector, Limit: pageSize}
	for {
		page, err := transport.ListPage(ctx, &options, client.Resource(resource).List)
		if err != nil {
			return nil, false, fmt.Errorf("cannot list %s: %w", resource.Resource, err)
		}
		for i := range page.Items {
			key := types.NamespacedName{Namespace: page.Items[i].GetNamespace(), Name: page.Items[i].GetName()}
			listed[key] = true
			_, state := p.mailboxes.Get(resource, mailbox, key)
			inStep = inStep && state == Present
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			break
		}
		options.Limit = min(2*options.Limit, pageSize)
	}
	if inStep {
		p.lock.Lock()
		p.stateLocked(mailbox).verifiedCaches[resource] = bindingVersion
		p.lock.Unlock()
	}
	return listed, inStep, nil
}

// isMassDeletion reports whether so many objects of a mailbox are missing that they may not have been deleted.
func (p *absenceVerifier) isMassDeletion(mailbox logicalcluster.Name, candidates int) bool {
	if candidates > massDeletionCount {
		return true
	}
	size := candidates
	for _, resource := range p.mailboxes.watchedResources() {
		informer, ok := p.mailboxes.informer(resource, mailbox)
		if !ok || resource == bindingsResource {
			continue
		}
		keys, err := informer.GetIndexer().IndexKeys(kcpcache.ClusterIndexName, kcpcache.ClusterIndexKey(mailbox))
		if err == nil {
			size += len(keys)
		}
	}
	return candidates > massDeletionMinimum && candidates*massDeletionDivisor > size
}
