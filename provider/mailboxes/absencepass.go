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

// runPass decides the suspects of a mailbox together, as far as they can be decided now, and says when to go on.
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
	if remaining := bindingSettlePeriod - p.clock.Since(p.bindingUnchangedSince(mailbox)); remaining > 0 {
		log.V(1).Info("the binding changed a moment ago", "wait", remaining)
		return result, remaining
	}
	many := p.isMassDeletion(mailbox, count)
	found, listed, err := p.verifyMissing(ctx, bound, mailbox, missing, many)
	delay := retryInterval
	if err != nil {
		log.Info("not all can be proven now", "reason", err.Error())
		delay = bindingSettlePeriod
	}
	if listed {
		// The lists must have been made under the binding that was looked at.
		if err := p.checkUnchanged(ctx, mailbox, bound); err != nil {
			log.Info("nothing can be proven now", "reason", err.Error())
			return result, bindingSettlePeriod
		}
	}
	result.cleared = found.cleared
	if many && len(found.verified) > 0 && !p.isMassConfirmed(mailbox, version) {
		log.Info("many objects vanished at once: they are proven again before anything is deleted", "wait", massDeletionDelay)
		return result, massDeletionDelay
	}
	result.verified = append(result.verified, found.verified...)
	return result, delay
}

// groupMissing returns the suspects that vanished although their resource is in force in the mailbox, by resource. Others
// left the watch because their claim is not in force, and stay suspects until it is.
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

// verifyMissing decides the suspects of each resource, as far as they can be decided: a resource that cannot be listed holds up
// no other. It believes the cache where that is in sync under this binding, unless always asks for a list, and else lists.
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

// verifyByCache decides by the cache. That may hold what is suspected to be gone: it may have come back while the suspicion was
// on its way, and was then cleared of nothing.
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

// verifyByList decides by a list. Through the virtual workspace one lacks what a claim hides: kcp labels the objects of a claimed
// resource one by one, and when claims change quickly it has left one without its label for long after the binding said that all
// were back. So what is claimed is listed in the workspace itself, if the hub may. What is there and not shown to the hub is
// neither gone nor seen: it stays suspected.
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
		// The hub may have no rights there, and the address of its kubeconfig may not lead to all shards.
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

// errCacheBehind means that a cache does not hold yet what there is.
var errCacheBehind = errors.New("the cache does not hold all of it yet")

// verifiedWithoutList decides about those candidates that need no list.
func verifiedWithoutList(candidates []AbsenceCandidate) (result passResult) {
	for _, candidate := range candidates {
		if !candidate.Missing {
			result.verified = append(result.verified, candidate)
		}
	}
	return result
}

// listKeys returns the keys of all objects of the resource in the mailbox that the selector chooses, read now. If the cache holds them
// all, the resource is in sync under this binding.
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

// isMassDeletion tells whether so many of a mailbox's objects vanished that something else than their deletion must be feared.
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
