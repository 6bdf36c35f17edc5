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
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	corev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	"github.com/kcp-dev/sdk/apis/third_party/conditions/util/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/synchub-dev/synchub/provider/requests"
)

var logicalClustersResource = corev1alpha1.SchemeGroupVersion.WithResource("logicalclusters")

// round decides the suspects of a mailbox together, as far as they can be decided now, and says when to go on.
func (p *prover) round(ctx context.Context, mailbox logicalcluster.Name, suspects []Suspect) (verdict, time.Duration) {
	ctx, cancel := context.WithTimeout(requests.As(ctx, requests.Extra), proofTimeout)
	defer cancel()
	log := p.log.WithValues("mailbox", mailbox, "suspects", len(suspects))

	binding, client, err := p.standing(ctx, mailbox)
	if err != nil {
		log.Info("nothing can be proven now", "reason", err.Error())
		return verdict{}, retryAfter
	}
	result := positive(suspects)
	vanished, count := inForce(binding, suspects)
	if count == 0 {
		return result, retryAfter
	}
	p.bindingSeen(mailbox, binding.ResourceVersion)
	if unsettled := settleFor - p.clock.Since(p.settledSince(mailbox)); unsettled > 0 {
		log.V(1).Info("the binding changed a moment ago", "wait", unsettled)
		return result, unsettled
	}
	many := p.isMany(mailbox, count)
	found, listed, err := p.examine(ctx, client, mailbox, vanished, binding.ResourceVersion, many)
	if err == nil && listed {
		// The lists must have been made under the binding that was looked at.
		err = p.unchanged(ctx, mailbox, binding)
	}
	if err != nil {
		log.Info("nothing can be proven now", "reason", err.Error())
		return result, settleFor
	}
	result.cleared = found.cleared
	if many && len(found.proven) > 0 && !p.holdOver(mailbox, binding.ResourceVersion) {
		log.Info("many objects vanished at once: they are proven again before anything is deleted", "wait", holdFor)
		return result, holdFor
	}
	result.proven = append(result.proven, found.proven...)
	return result, retryAfter
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

// examine believes the cache where it is in step under this binding, unless always asks for a list, and else lists.
func (p *prover) examine(ctx context.Context, client dynamic.Interface, mailbox logicalcluster.Name, vanished map[schema.GroupVersionResource][]Suspect, bindingVersion string, always bool) (result verdict, listed bool, err error) {
	for resource, suspects := range vanished {
		if !always && p.isInStep(mailbox, resource, bindingVersion) {
			for _, suspect := range suspects {
				result.add(suspect, p.isSeen(mailbox, suspect))
			}
			continue
		}
		keys, err := p.list(ctx, client, mailbox, resource, bindingVersion)
		if err != nil {
			return verdict{}, true, fmt.Errorf("%s: %w", resource.Resource, err)
		}
		listed = true
		for _, suspect := range suspects {
			result.add(suspect, keys[suspect.Key])
		}
	}
	return result, listed, nil
}

// isSeen tells whether the cache holds what is suspected to be gone: it may have come back while the suspicion was on its
// way, and was then absolved of nothing.
func (p *prover) isSeen(mailbox logicalcluster.Name, suspect Suspect) bool {
	_, state := p.mailboxes.Get(suspect.Resource, mailbox, suspect.Key)
	return state == Present
}

// unchanged fails if the mailbox's binding is not what it was.
func (p *prover) unchanged(ctx context.Context, mailbox logicalcluster.Name, binding *apisv1alpha2.APIBinding) error {
	again, _, err := p.standing(ctx, mailbox)
	if err == nil && again.ResourceVersion != binding.ResourceVersion {
		err = fmt.Errorf("the binding %s changed meanwhile", binding.Name)
	}
	return err
}

// positive is the verdict on those suspects only that need no list.
func positive(suspects []Suspect) (result verdict) {
	for _, suspect := range suspects {
		if !suspect.Vanished {
			result.proven = append(result.proven, suspect)
		}
	}
	return result
}

// standing returns the mailbox's binding, read now, and fails unless the mailbox is bound and not going away.
func (p *prover) standing(ctx context.Context, mailbox logicalcluster.Name) (*apisv1alpha2.APIBinding, dynamic.Interface, error) {
	endpoint := p.mailboxes.locate(mailbox)
	if endpoint == nil {
		return nil, nil, fmt.Errorf("no endpoint shows a binding of the mailbox")
	}
	cached := endpoint.binding(mailbox)
	if cached == nil {
		return nil, nil, fmt.Errorf("no endpoint shows a binding of the mailbox")
	}
	client := endpoint.client.Cluster(mailbox.Path())
	var binding apisv1alpha2.APIBinding
	if err := get(ctx, client, bindingsResource, cached.GetName(), &binding); err != nil {
		return nil, nil, err
	}
	var logicalCluster corev1alpha1.LogicalCluster
	if err := get(ctx, client, logicalClustersResource, corev1alpha1.LogicalClusterName, &logicalCluster); err != nil {
		return nil, nil, err
	}
	switch {
	case binding.DeletionTimestamp != nil:
		return nil, nil, fmt.Errorf("the binding %s is being deleted", binding.Name)
	case binding.Status.Phase != apisv1alpha2.APIBindingPhaseBound:
		return nil, nil, fmt.Errorf("the binding %s is in phase %q", binding.Name, binding.Status.Phase)
	case logicalCluster.DeletionTimestamp != nil:
		return nil, nil, fmt.Errorf("the mailbox is being deleted")
	case logicalCluster.Status.Phase != corev1alpha1.LogicalClusterPhaseReady:
		return nil, nil, fmt.Errorf("the mailbox is in phase %q", logicalCluster.Status.Phase)
	}
	return &binding, client, nil
}

func get(ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, name string, into any) error {
	found, err := client.Resource(resource).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("cannot get %s %s: %w", resource.Resource, name, err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, into); err != nil {
		return fmt.Errorf("cannot read %s %s: %w", resource.Resource, name, err)
	}
	return nil
}

// servesClaim tells whether a resource is in force in a mailbox: bound with the export, or claimed, accepted and applied.
func servesClaim(binding *apisv1alpha2.APIBinding, resource schema.GroupResource) bool {
	for _, bound := range binding.Status.BoundResources {
		if bound.Group == resource.Group && bound.Resource == resource.Resource {
			return true
		}
	}
	if !conditions.IsTrue(binding, apisv1alpha2.PermissionClaimsApplied) {
		return false
	}
	accepted := false
	for _, claim := range binding.Spec.PermissionClaims {
		if claim.Group == resource.Group && claim.Resource == resource.Resource {
			accepted = claim.State == apisv1alpha2.ClaimAccepted
		}
	}
	for _, claim := range binding.Status.AppliedPermissionClaims {
		if claim.Group == resource.Group && claim.Resource == resource.Resource {
			return accepted
		}
	}
	return false
}

// list returns the keys of all objects of the resource in the mailbox, read now. If the cache holds them all, the
// resource is in step under this binding.
func (p *prover) list(ctx context.Context, client dynamic.Interface, mailbox logicalcluster.Name, resource schema.GroupVersionResource, bindingVersion string) (map[types.NamespacedName]bool, error) {
	const pageSize = 500
	listed := map[types.NamespacedName]bool{}
	inStep := true
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := client.Resource(resource).List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("cannot list %s: %w", resource.Resource, err)
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
	}
	if inStep {
		p.lock.Lock()
		p.docketLocked(mailbox).inStep[resource] = bindingVersion
		p.lock.Unlock()
	}
	return listed, nil
}

func (p *prover) settledSince(mailbox logicalcluster.Name) time.Time {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.docketLocked(mailbox).since
}

func (p *prover) isInStep(mailbox logicalcluster.Name, resource schema.GroupVersionResource, bindingVersion string) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.docketLocked(mailbox).inStep[resource] == bindingVersion
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

// holdOver tells whether many suspects were proven under the same binding long enough ago; the first time, it notes that
// they are now.
func (p *prover) holdOver(mailbox logicalcluster.Name, bindingVersion string) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	docket := p.docketLocked(mailbox)
	// A hold that nobody came back to is from another time.
	if docket.heldBinding != bindingVersion || p.clock.Since(docket.held) > 2*holdFor+proofTimeout {
		docket.heldBinding, docket.held = bindingVersion, p.clock.Now()
		return false
	}
	if p.clock.Since(docket.held) < holdFor {
		return false
	}
	docket.heldBinding = ""
	return true
}
