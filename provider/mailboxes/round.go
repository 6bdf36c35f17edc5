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

	"github.com/synchub-dev/synchub/provider/requests"
	"github.com/synchub-dev/synchub/provider/transport"
)

// round decides the suspects of a mailbox together, as far as they can be decided now, and says when to go on.
func (p *prover) round(ctx context.Context, mailbox logicalcluster.Name, suspects []Suspect) (verdict, time.Duration) {
	ctx, cancel := context.WithTimeout(requests.As(ctx, requests.Extra), proofTimeout)
	defer cancel()
	log := p.log.WithValues("mailbox", mailbox, "suspects", len(suspects))

	if p.mailboxes.isClosed(mailbox, false) || p.mailboxes.isClosed(mailbox, true) {
		log.V(1).Info("nothing can be proven while nothing of the mailbox is held")
		return verdict{}, retryAfter
	}
	standing, err := p.look(ctx, mailbox)
	if errors.Is(err, errRebound) {
		if p.noteRebound(mailbox) {
			log.Info("nothing will be proven", "reason", err.Error())
			p.mailboxes.resetMailbox(mailbox)
		}
		return verdict{}, reboundRetryAfter
	}
	if err != nil {
		log.Info("nothing can be proven now", "reason", err.Error())
		return verdict{}, retryAfter
	}
	result := positive(suspects)
	vanished, count := inForce(standing.binding, suspects)
	if count == 0 {
		return result, retryAfter
	}
	version := standing.binding.ResourceVersion
	p.bindingSeen(mailbox, version)
	if unsettled := settleFor - p.clock.Since(p.settledSince(mailbox)); unsettled > 0 {
		log.V(1).Info("the binding changed a moment ago", "wait", unsettled)
		return result, unsettled
	}
	many := p.isMany(mailbox, count)
	found, listed, err := p.examine(ctx, standing, mailbox, vanished, many)
	delay := retryAfter
	if err != nil {
		log.Info("not all can be proven now", "reason", err.Error())
		delay = settleFor
	}
	if listed {
		// The lists must have been made under the binding that was looked at.
		if err := p.unchanged(ctx, mailbox, standing); err != nil {
			log.Info("nothing can be proven now", "reason", err.Error())
			return result, settleFor
		}
	}
	result.cleared = found.cleared
	if many && len(found.proven) > 0 && !p.holdOver(mailbox, version) {
		log.Info("many objects vanished at once: they are proven again before anything is deleted", "wait", holdFor)
		return result, holdFor
	}
	result.proven = append(result.proven, found.proven...)
	return result, delay
}

// inForce returns the suspects that vanished although their resource is in force in the mailbox, by resource. Others
// left the watch because their claim is not in force, and stay suspects until it is.
func inForce(binding *apisv1alpha2.APIBinding, suspects []Suspect) (vanished map[schema.GroupVersionResource][]Suspect, count int) {
	vanished = map[schema.GroupVersionResource][]Suspect{}
	for _, suspect := range suspects {
		if suspect.Vanished && servesClaim(binding, suspect.Resource.GroupResource()) {
			vanished[suspect.Resource] = append(vanished[suspect.Resource], suspect)
			count++
		}
	}
	return vanished, count
}

// examine decides the suspects of each resource, as far as they can be decided: a resource that cannot be listed holds up
// no other. It believes the cache where that is in step under this binding, unless always asks for a list, and else lists.
func (p *prover) examine(ctx context.Context, standing *standing, mailbox logicalcluster.Name, vanished map[schema.GroupVersionResource][]Suspect, always bool) (result verdict, listed bool, err error) {
	var errs []error
	for resource, suspects := range vanished {
		var found verdict
		var failure error
		if !always && p.isInStep(mailbox, resource, standing.binding.ResourceVersion) {
			found, failure = p.believe(mailbox, suspects)
		} else {
			listed = true
			found, failure = p.examineList(ctx, standing, mailbox, resource, suspects)
		}
		if failure != nil {
			errs = append(errs, fmt.Errorf("%s: %w", resource.Resource, failure))
		}
		result.proven, result.cleared = append(result.proven, found.proven...), append(result.cleared, found.cleared...)
		result.hidden = append(result.hidden, found.hidden...)
	}
	p.noteHidden(mailbox, result.hidden)
	return result, listed, errors.Join(errs...)
}

var errNoCache = errors.New("there is no cache of it")

// believe decides by the cache. That may hold what is suspected to be gone: it may have come back while the suspicion was
// on its way, and was then absolved of nothing.
func (p *prover) believe(mailbox logicalcluster.Name, suspects []Suspect) (result verdict, err error) {
	for _, suspect := range suspects {
		_, state := p.mailboxes.Get(suspect.Resource, mailbox, suspect.Key)
		if state == Unknown {
			return verdict{}, errNoCache
		}
		result.add(suspect, state == Present)
	}
	return result, nil
}

// examineList decides by a list. Through the virtual workspace one lacks what a claim hides: kcp labels the objects of a claimed
// resource one by one, and when claims change quickly it has left one without its label for long after the binding said that all
// were back. So what is claimed is listed in the workspace itself, if the hub may. What is there and not shown to the hub is
// neither gone nor seen: it stays suspected.
func (p *prover) examineList(ctx context.Context, standing *standing, mailbox logicalcluster.Name, resource schema.GroupVersionResource, suspects []Suspect) (result verdict, err error) {
	client, selector, direct := standing.client, "", false
	if claim := claimOf(standing.binding, resource.GroupResource()); claim != nil {
		if selector, err = selectorOf(claim); err != nil {
			return verdict{}, err
		}
		if client, err = p.workspaceOf(mailbox); err != nil {
			return verdict{}, err
		}
		direct = true
	}
	keys, inStep, err := p.list(ctx, client, mailbox, resource, selector, standing.binding.ResourceVersion)
	if direct && (apierrors.IsForbidden(err) || apierrors.IsNotFound(err)) {
		// The hub may have no rights there, and the address of its kubeconfig may not lead to all shards.
		direct = false
		keys, inStep, err = p.list(ctx, standing.client, mailbox, resource, "", standing.binding.ResourceVersion)
	}
	if err != nil {
		return verdict{}, err
	}
	for _, suspect := range suspects {
		if suspect.Key == Roll && !inStep {
			return verdict{}, errBehind
		}
		if direct && keys[suspect.Key] && !p.isHeld(mailbox, suspect) {
			result.hidden = append(result.hidden, suspect)
			continue
		}
		result.add(suspect, keys[suspect.Key])
	}
	if hidden := len(result.hidden); hidden > 0 {
		return result, fmt.Errorf("%d objects are there that kcp does not show to the hub", hidden)
	}
	return result, nil
}

func (p *prover) isHeld(mailbox logicalcluster.Name, suspect Suspect) bool {
	_, state := p.mailboxes.Get(suspect.Resource, mailbox, suspect.Key)
	return state == Present
}

// errBehind means that a cache does not hold yet what there is.
var errBehind = errors.New("the cache does not hold all of it yet")

// positive is the verdict on those suspects only that need no list.
func positive(suspects []Suspect) (result verdict) {
	for _, suspect := range suspects {
		if !suspect.Vanished {
			result.proven = append(result.proven, suspect)
		}
	}
	return result
}

// list returns the keys of all objects of the resource in the mailbox that the selector chooses, read now. If the cache holds them
// all, the resource is in step under this binding.
func (p *prover) list(ctx context.Context, client dynamic.Interface, mailbox logicalcluster.Name, resource schema.GroupVersionResource, selector, bindingVersion string) (listed map[types.NamespacedName]bool, inStep bool, err error) {
	const pageSize = 500
	listed, inStep = map[types.NamespacedName]bool{}, true
	options := metav1.ListOptions{LabelSelector: selector, Limit: pageSize}
	for {
		page, err := transport.Page(ctx, &options, client.Resource(resource).List)
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
		p.docketLocked(mailbox).inStep[resource] = bindingVersion
		p.lock.Unlock()
	}
	return listed, inStep, nil
}

// isMany tells whether so many of a mailbox's objects vanished that something else than their deletion must be feared.
func (p *prover) isMany(mailbox logicalcluster.Name, suspects int) bool {
	if suspects > manySuspects {
		return true
	}
	size := suspects
	for _, resource := range p.mailboxes.watched() {
		informer, ok := p.mailboxes.informer(resource, mailbox)
		if !ok || resource == bindingsResource {
			continue
		}
		keys, err := informer.GetIndexer().IndexKeys(kcpcache.ClusterIndexName, kcpcache.ClusterIndexKey(mailbox))
		if err == nil {
			size += len(keys)
		}
	}
	return suspects > someSuspects && suspects*manyOf > size
}
