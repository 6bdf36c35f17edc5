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

package absence

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/synchub-dev/synchub/provider/requestclass"
	"github.com/synchub-dev/synchub/provider/transport"
	"github.com/synchub-dev/synchub/provider/wording"
)

// passResult is the result of one pass. Candidates that are neither verified nor cleared stay pending. The hidden ones exist
// and are not shown to the hub.
type passResult struct{ verified, cleared, hidden []Candidate }

// add verifies a candidate, or clears it if its object exists.
func (r *passResult) add(candidate Candidate, exists bool) {
	if exists {
		r.cleared = append(r.cleared, candidate)
		return
	}
	r.verified = append(r.verified, candidate)
}

// runPass verifies the candidates of a mailbox together, as far as that is possible now. It returns the delay until the next
// pass.
func (v *Verifier) runPass(ctx context.Context, mailbox logicalcluster.Name, candidates []Candidate) (passResult, time.Duration) {
	ctx, cancel := context.WithTimeout(requestclass.With(ctx, requestclass.Extra), passTimeout)
	defer cancel()
	log := v.log.WithValues("mailbox", mailbox, "candidates", len(candidates))

	if v.cache.IsIncomplete(mailbox) {
		log.V(1).Info("cannot verify absences while the mailbox is not cached")
		return passResult{}, retryInterval
	}
	bound, err := v.readBoundMailbox(ctx, mailbox)
	if errors.Is(err, errRebound) {
		if v.markRebound(mailbox) {
			log.Info("will not verify absences", "reason", err.Error())
			v.cache.OnRebound(mailbox)
		}
		return passResult{}, reboundRetryInterval
	}
	if err != nil {
		log.Info("cannot verify absences now", "reason", err.Error())
		return passResult{}, retryInterval
	}
	result := verifiedWithoutList(candidates)
	missing, count := groupMissing(bound.binding, candidates)
	if count == 0 {
		return result, retryInterval
	}
	version := bound.binding.ResourceVersion
	v.ObserveBinding(mailbox, version)
	if remaining := v.delays.BindingSettle - v.clock.Since(v.bindingUnchangedSince(mailbox)); remaining > 0 {
		log.V(1).Info("the binding changed a moment ago", "wait", remaining)
		return result, remaining
	}
	isMass := v.isMassDeletion(mailbox, count)
	found, listed, err := v.verifyMissing(ctx, bound, mailbox, missing, isMass)
	delay := retryInterval
	if err != nil {
		log.Info("cannot verify all absences now", "reason", err.Error())
		delay = v.delays.BindingSettle
	}
	if listed {
		// The lists count only if the binding did not change during the pass.
		if err := v.checkUnchanged(ctx, mailbox, bound); err != nil {
			log.Info("cannot verify absences now", "reason", err.Error())
			return result, v.delays.BindingSettle
		}
	}
	result.cleared = found.cleared
	if isMass && len(found.verified) > 0 && !v.isMassConfirmed(mailbox, version) {
		log.Info("many objects vanished at once: the hub verifies their absence again before it deletes anything", "wait", v.delays.MassDeletion)
		return result, v.delays.MassDeletion
	}
	result.verified = append(result.verified, found.verified...)
	return result, delay
}

// verifiedWithoutList returns the result for candidates that need no list.
func verifiedWithoutList(candidates []Candidate) (result passResult) {
	for _, candidate := range candidates {
		if !candidate.Missing {
			result.verified = append(result.verified, candidate)
		}
	}
	return result
}

// groupMissing returns the missing candidates by resource. Candidates of a resource that the mailbox does not serve
// disappeared from the watch together with their claim; they stay pending until the mailbox serves the resource again.
func groupMissing(binding *apisv1alpha2.APIBinding, candidates []Candidate) (missing map[schema.GroupVersionResource][]Candidate, count int) {
	missing = map[schema.GroupVersionResource][]Candidate{}
	for _, candidate := range candidates {
		if candidate.Missing && servesResource(binding, candidate.Resource.GroupResource()) {
			missing[candidate.Resource] = append(missing[candidate.Resource], candidate)
			count++
		}
	}
	return missing, count
}

// isMassDeletion reports whether a mailbox misses so many objects that they may not have been deleted.
func (v *Verifier) isMassDeletion(mailbox logicalcluster.Name, candidates int) bool {
	if candidates > massDeletionCount {
		return true
	}
	return candidates > massDeletionMinimum && candidates*massDeletionDivisor > candidates+v.cache.CountObjects(mailbox)
}

// verifyMissing verifies the missing candidates of each resource; one that cannot be listed does not block another. It trusts
// a cache that was verified under this binding, and lists all other resources. With always it lists each resource.
func (v *Verifier) verifyMissing(ctx context.Context, bound *boundMailbox, mailbox logicalcluster.Name, missing map[schema.GroupVersionResource][]Candidate, always bool) (result passResult, listed bool, err error) {
	var errs []error
	for resource, candidates := range missing {
		var found passResult
		var failure error
		if !always && v.isCacheVerified(mailbox, resource, bound.binding.ResourceVersion) {
			found, failure = v.verifyByCache(mailbox, candidates)
		} else {
			listed = true
			found, failure = v.verifyByList(ctx, bound, mailbox, resource, candidates)
		}
		if failure != nil {
			errs = append(errs, fmt.Errorf("%s: %w", resource.Resource, failure))
		}
		result.verified, result.cleared = append(result.verified, found.verified...), append(result.cleared, found.cleared...)
		result.hidden = append(result.hidden, found.hidden...)
	}
	v.setHidden(mailbox, result.hidden)
	return result, listed, errors.Join(errs...)
}

// errNoCache means that the cache of a resource is not filled.
var errNoCache = errors.New("there is no cache of it")

// verifyByCache verifies against the cache. The cache may contain the object of a candidate: an object that came back before
// [Verifier.Verify] did not clear its candidate.
func (v *Verifier) verifyByCache(mailbox logicalcluster.Name, candidates []Candidate) (result passResult, err error) {
	for _, candidate := range candidates {
		contained, known := v.cache.Contains(candidate.Resource, mailbox, candidate.Key)
		if !known {
			return passResult{}, errNoCache
		}
		result.add(candidate, contained)
	}
	return result, nil
}

// errCacheBehind means that the cache lacks objects of a list.
var errCacheBehind = errors.New("the cache does not hold all of it yet")

// verifyByList verifies against a list. A list through the virtual workspace lacks objects that a claim hides: kcp labels the
// objects of a claimed resource one by one. After quick changes of claims, kcp has left an object unlabelled long after the
// binding reported success. The verifier therefore lists claimed resources in the workspace itself, if the hub may. An
// object that exists there and is hidden from the hub is neither absent nor visible: it stays a candidate.
func (v *Verifier) verifyByList(ctx context.Context, bound *boundMailbox, mailbox logicalcluster.Name, resource schema.GroupVersionResource, candidates []Candidate) (result passResult, err error) {
	client, selector, direct := bound.Client, "", false
	if claim := appliedClaim(bound.binding, resource.GroupResource()); claim != nil {
		if selector, err = claimSelector(claim); err != nil {
			return passResult{}, err
		}
		if client, err = v.cache.WorkspaceClient(mailbox); err != nil {
			return passResult{}, err
		}
		direct = true
	}
	list, err := v.listKeys(ctx, client, mailbox, resource, selector)
	if direct && (apierrors.IsForbidden(err) || apierrors.IsNotFound(err)) {
		// The hub may lack permissions there, and its kubeconfig may not reach all shards.
		direct, client = false, bound.Client
		list, err = v.listKeys(ctx, client, mailbox, resource, "")
	}
	if err == nil {
		err = v.verifyHistory(ctx, client, mailbox, resource, list.version)
	}
	if err != nil {
		return passResult{}, err
	}
	if list.isCached {
		v.setCacheVerified(mailbox, resource, bound.binding.ResourceVersion)
	}
	return v.compareWithList(mailbox, resource, candidates, list, direct)
}

// compareWithList decides about candidates by a list. A direct list was made in the workspace itself, so it shows hidden objects too.
func (v *Verifier) compareWithList(mailbox logicalcluster.Name, resource schema.GroupVersionResource, candidates []Candidate, list keyList, direct bool) (result passResult, err error) {
	for _, candidate := range candidates {
		if candidate.Key == AllObjects && !list.isCached {
			return passResult{}, errCacheBehind
		}
		if direct && list.keys[candidate.Key] && !v.isCached(resource, mailbox, candidate.Key) {
			result.hidden = append(result.hidden, candidate)
			continue
		}
		result.add(candidate, list.keys[candidate.Key])
	}
	if hidden := len(result.hidden); hidden > 0 {
		return result, fmt.Errorf("kcp does not show %s to the hub", wording.Count(hidden, "existing object", "existing objects"))
	}
	return result, nil
}

func (v *Verifier) isCached(resource schema.GroupVersionResource, mailbox logicalcluster.Name, key types.NamespacedName) bool {
	contained, known := v.cache.Contains(resource, mailbox, key)
	return known && contained
}

// keyList is a list of all objects of a resource in a mailbox. isCached is true if the cache holds all of them.
type keyList struct {
	keys     map[types.NamespacedName]bool
	isCached bool
	version  string
}

// listKeys lists the keys of all objects of a resource in the mailbox that the selector matches.
func (v *Verifier) listKeys(ctx context.Context, client dynamic.Interface, mailbox logicalcluster.Name, resource schema.GroupVersionResource, selector string) (list keyList, err error) {
	list = keyList{keys: map[types.NamespacedName]bool{}, isCached: true}
	for page, err := range transport.Pages(ctx, metav1.ListOptions{LabelSelector: selector, Limit: 500}, client.Resource(resource).List) {
		if err != nil {
			return keyList{}, fmt.Errorf("cannot list %s: %w", resource.Resource, err)
		}
		for i := range page.Items {
			key := types.NamespacedName{Namespace: page.Items[i].GetNamespace(), Name: page.Items[i].GetName()}
			list.keys[key] = true
			list.isCached = list.isCached && v.isCached(resource, mailbox, key)
		}
		list.version = page.GetResourceVersion()
	}
	return list, nil
}
