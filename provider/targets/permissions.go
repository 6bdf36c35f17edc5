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

package targets

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/synchub-dev/synchub/provider/rbac"
	"github.com/synchub-dev/synchub/provider/requestclass"
)

const (
	// permissionCheckInterval is how often the hub reviews its permissions on a target without a cause; up to a fifth of it is
	// added at random.
	permissionCheckInterval = 10 * time.Minute
	// forbiddenCheckInterval is the delay of a review after the target has forbidden a request.
	forbiddenCheckInterval = 30 * time.Second
	// missingCheckInterval is the delay of a review after a permission was found missing: an administrator is likely to grant it
	// soon. The delay doubles while the result stays the same.
	missingCheckInterval = 10 * time.Second
	// pollInterval is the longest time between two calls of Get, by the heartbeat of the SyncTarget. A change is published for
	// an earlier review.
	pollInterval = time.Minute
	// unansweredCheckInterval is the delay of a review after one without an answer.
	unansweredCheckInterval = time.Minute
	// noNamespace is an impossible name of a namespace: a review of it returns the permissions that hold in all namespaces.
	noNamespace = "_"
)

// Permissions are the hub's permissions on a target. The zero value means that they are unknown.
type Permissions struct {
	// Known is true once the target has answered a review.
	Known bool
	// Missing are the needed permissions that the target does not allow.
	Missing []authorizationv1.ResourceAttributes
	// Problem is the reason why there is no answer.
	Problem string
}

func (p Permissions) equal(other Permissions) bool {
	return p.Known == other.Known && p.Problem == other.Problem && slices.Equal(p.Missing, other.Missing)
}

// PermissionChecker reviews the hub's permissions on a target. It holds the result of the last review, and the time of the next one.
type PermissionChecker struct {
	env    *environment
	client *client
	health *HealthMonitor

	lock     sync.Mutex
	known    Permissions
	checking bool
	// requested is the hash of the permissions that were reviewed, or trusted, at checkedAt. nextCheck is the time of the next
	// review, and forbiddenAtCheck the number of forbidden requests at the last one.
	requested            uint64
	checkedAt, nextCheck time.Time
	forbiddenAtCheck     int64
	// backoff is the delay after the last review that found a permission missing.
	backoff time.Duration
}

// Get returns the result of the last review at once, and starts a review in the background if one is due. A change is
// published if its result differs. A caller with a result from before this connection passes the time until which it trusts that
// result: the same permissions are not reviewed earlier.
func (p *PermissionChecker) Get(needed []authorizationv1.ResourceAttributes, trusted time.Time) Permissions {
	up := p.health.IsUp()
	p.lock.Lock()
	defer p.lock.Unlock()
	now, hash := p.env.clock.Now(), hashAttributes(needed)
	if p.checkedAt.IsZero() && now.Before(trusted) {
		p.checkedAt, p.nextCheck, p.requested = now, trusted, hash
	}
	if up && p.isCheckDue(hash, now) {
		p.checking, p.checkedAt, p.requested = true, now, hash
		p.env.runInBackground(func(ctx context.Context) {
			p.checkPermissions(requestclass.With(ctx, requestclass.Background), needed)
		})
	}
	return p.known
}

var hashSeed = maphash.MakeSeed()

// hashAttributes returns a hash of permissions. The permissions themselves would take 128 bytes for each of a resource's six
// verbs.
func hashAttributes(needed []authorizationv1.ResourceAttributes) uint64 {
	var hash maphash.Hash
	hash.SetSeed(hashSeed)
	for _, one := range needed {
		maphash.WriteComparable(&hash, one)
	}
	return hash.Sum64()
}

// isCheckDue reports whether to start a review of the permissions with this hash. It requires the lock.
func (p *PermissionChecker) isCheckDue(hash uint64, now time.Time) bool {
	switch {
	case p.checking:
		return false
	case p.checkedAt.IsZero(), hash != p.requested:
		return true
	case p.client.forbidden.Load() != p.forbiddenAtCheck && now.Sub(p.checkedAt) >= forbiddenCheckInterval:
		return true
	default:
		return !now.Before(p.nextCheck)
	}
}

// checkPermissions reviews the permissions, and publishes a change if the result differs from the last one.
func (p *PermissionChecker) checkPermissions(ctx context.Context, needed []authorizationv1.ResourceAttributes) {
	missing, err := p.missingPermissions(ctx, needed)
	found, next := Permissions{Known: true, Missing: missing}, wait.Jitter(permissionCheckInterval, 0.2)
	if err != nil {
		found, next = Permissions{Problem: p.client.redactError(err)}, unansweredCheckInterval
	}
	p.lock.Lock()
	changed := !p.known.equal(found)
	if len(missing) > 0 {
		next = min(p.nextBackoff(changed), next)
	}
	p.known, p.checking = found, false
	p.nextCheck = p.env.clock.Now().Add(next)
	p.forbiddenAtCheck = p.client.forbidden.Load()
	p.lock.Unlock()
	if changed && ctx.Err() == nil {
		p.env.changed()
	}
	if next < pollInterval {
		// Get is called then, and starts the next review.
		p.env.runInBackground(func(ctx context.Context) {
			if p.env.sleep(ctx, next) == nil {
				p.env.changed()
			}
		})
	}
}

// nextBackoff returns the delay after a review that found a permission missing. It requires the lock.
func (p *PermissionChecker) nextBackoff(changed bool) time.Duration {
	if changed || p.backoff == 0 {
		p.backoff = missingCheckInterval
	} else {
		p.backoff = min(2*p.backoff, permissionCheckInterval)
	}
	return p.backoff
}

// missingPermissions returns the needed permissions that the target does not allow; needed is sorted by namespace. One rules
// review for each namespace is enough if all permissions come from roles. Permissions that another authorizer may allow are
// reviewed by resource.
func (p *PermissionChecker) missingPermissions(ctx context.Context, needed []authorizationv1.ResourceAttributes) ([]authorizationv1.ResourceAttributes, error) {
	return eachRun(needed, func(one authorizationv1.ResourceAttributes) any { return one.Namespace }, func(run []authorizationv1.ResourceAttributes) ([]authorizationv1.ResourceAttributes, error) {
		return p.missingPermissionsIn(ctx, run[0].Namespace, run)
	})
}

// eachRun calls a function with each run of permissions that have the same key, and returns all that it returns.
func eachRun(all []authorizationv1.ResourceAttributes, key func(authorizationv1.ResourceAttributes) any, call func([]authorizationv1.ResourceAttributes) ([]authorizationv1.ResourceAttributes, error)) (found []authorizationv1.ResourceAttributes, err error) {
	for len(all) > 0 {
		end := slices.IndexFunc(all, func(one authorizationv1.ResourceAttributes) bool { return key(one) != key(all[0]) })
		if end < 0 {
			end = len(all)
		}
		some, err := call(all[:end])
		if err != nil {
			return nil, err
		}
		found, all = append(found, some...), all[end:]
	}
	return found, nil
}

// missingPermissionsIn returns the missing permissions in one namespace; an empty name means all namespaces.
func (p *PermissionChecker) missingPermissionsIn(ctx context.Context, namespace string, needed []authorizationv1.ResourceAttributes) ([]authorizationv1.ResourceAttributes, error) {
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: cmp.Or(namespace, noNamespace)}}
	err := p.createReview(ctx, "selfsubjectrulesreviews", "SelfSubjectRulesReview", review)
	switch {
	case err == nil && !review.Status.Incomplete:
		return rbac.MissingAttributes(needed, review.Status.ResourceRules), nil
	case err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) && !apierrors.IsBadRequest(err) && !apierrors.IsInvalid(err):
		return nil, err
	}
	unverified := rbac.MissingAttributes(needed, review.Status.ResourceRules)
	resource := func(one authorizationv1.ResourceAttributes) any {
		return schema.GroupResource{Group: one.Group, Resource: one.Resource}
	}
	return eachRun(unverified, resource, func(verbs []authorizationv1.ResourceAttributes) ([]authorizationv1.ResourceAttributes, error) {
		return p.deniedVerbs(ctx, verbs)
	})
}

// deniedVerbs returns the verbs on one resource that the target does not allow.
func (p *PermissionChecker) deniedVerbs(ctx context.Context, verbs []authorizationv1.ResourceAttributes) ([]authorizationv1.ResourceAttributes, error) {
	all := verbs[0]
	all.Verb = rbacv1.VerbAll
	if allowed, err := p.isAllowed(ctx, all); allowed || err != nil {
		return nil, err
	}
	var denied []authorizationv1.ResourceAttributes
	for _, one := range verbs {
		allowed, err := p.isAllowed(ctx, one)
		if err != nil {
			return nil, err
		}
		if !allowed {
			denied = append(denied, one)
		}
	}
	return denied, nil
}

func (p *PermissionChecker) isAllowed(ctx context.Context, attributes authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes}}
	err := p.createReview(ctx, "selfsubjectaccessreviews", "SelfSubjectAccessReview", review)
	return review.Status.Allowed, err
}

// createReview creates a review of the hub's own permissions, and reads the answer into it.
func (p *PermissionChecker) createReview(ctx context.Context, resource, kind string, review any) error {
	ctx, done := withTimeout(ctx, requestTimeout)
	defer done()
	version := authorizationv1.SchemeGroupVersion
	if err := p.client.create(ctx, version.WithResource(resource), "", version.WithKind(kind), review); err != nil {
		return fmt.Errorf("cannot read the hub's permissions on the target: %w", err)
	}
	return nil
}
