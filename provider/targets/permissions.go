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
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
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
	// pollInterval is the longest time between two calls of Permissions, by the heartbeat of the SyncTarget. For an earlier
	// review, OnChange is called.
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

// permissionChecker holds the result of the last review, and the time of the next one.
type permissionChecker struct {
	// forbiddenCount counts all requests that the target has forbidden.
	forbiddenCount atomic.Int64

	lock     sync.Mutex
	known    Permissions
	checking bool
	// requested is the hash of the permissions that were reviewed, or trusted, at checkedAt. nextCheck is the time of the next
	// review, and forbiddenAtCheck the forbiddenCount of the last one.
	requested            uint64
	checkedAt, nextCheck time.Time
	forbiddenAtCheck     int64
	// backoff is the delay after the last review that found a permission missing.
	backoff time.Duration
}

// Permissions returns the result of the last review at once, and starts a review in the background if one is due. OnChange is
// called if its result differs. A caller with a result from before this connection passes the time until which it trusts that
// result: the same permissions are not reviewed earlier.
func (c *Connection) Permissions(needed []authorizationv1.ResourceAttributes, trusted time.Time) Permissions {
	up := c.IsUp()
	c.permissions.lock.Lock()
	defer c.permissions.lock.Unlock()
	now, hash := c.clock.Now(), hashAttributes(needed)
	if c.permissions.checkedAt.IsZero() && now.Before(trusted) {
		c.permissions.checkedAt, c.permissions.nextCheck, c.permissions.requested = now, trusted, hash
	}
	if up && c.permissions.isCheckDue(hash, now) {
		c.permissions.checking, c.permissions.checkedAt, c.permissions.requested = true, now, hash
		c.RunInBackground(func(ctx context.Context) {
			c.checkPermissions(requestclass.With(ctx, requestclass.Background), needed)
		})
	}
	return c.permissions.known
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
func (p *permissionChecker) isCheckDue(hash uint64, now time.Time) bool {
	switch {
	case p.checking:
		return false
	case p.checkedAt.IsZero(), hash != p.requested:
		return true
	case p.forbiddenCount.Load() != p.forbiddenAtCheck && now.Sub(p.checkedAt) >= forbiddenCheckInterval:
		return true
	default:
		return !now.Before(p.nextCheck)
	}
}

// checkPermissions reviews the permissions, and calls onChange if the result differs from the last one.
func (c *Connection) checkPermissions(ctx context.Context, needed []authorizationv1.ResourceAttributes) {
	missing, err := c.missingPermissions(ctx, needed)
	found, next := Permissions{Known: true, Missing: missing}, wait.Jitter(permissionCheckInterval, 0.2)
	if err != nil {
		found, next = Permissions{Problem: c.RedactError(err)}, unansweredCheckInterval
	}
	c.permissions.lock.Lock()
	changed := !c.permissions.known.equal(found)
	if len(missing) > 0 {
		next = min(c.permissions.nextBackoff(changed), next)
	}
	c.permissions.known, c.permissions.checking = found, false
	c.permissions.nextCheck = c.clock.Now().Add(next)
	c.permissions.forbiddenAtCheck = c.permissions.forbiddenCount.Load()
	c.permissions.lock.Unlock()
	if changed && ctx.Err() == nil {
		c.onChange(c.SyncTarget)
	}
	if next < pollInterval {
		c.RunInBackground(func(ctx context.Context) { c.notifyAfter(ctx, next) })
	}
}

// nextBackoff returns the delay after a review that found a permission missing. It requires the lock.
func (p *permissionChecker) nextBackoff(changed bool) time.Duration {
	if changed || p.backoff == 0 {
		p.backoff = missingCheckInterval
	} else {
		p.backoff = min(2*p.backoff, permissionCheckInterval)
	}
	return p.backoff
}

// notifyAfter calls onChange after a delay, so that Permissions is called when the next review is due.
func (c *Connection) notifyAfter(ctx context.Context, after time.Duration) {
	select {
	case <-ctx.Done():
	case <-c.clock.After(after):
		c.onChange(c.SyncTarget)
	}
}

// missingPermissions returns the needed permissions that the target does not allow; needed is sorted by namespace. One rules
// review for each namespace is enough if all permissions come from roles. Permissions that another authorizer may allow are
// reviewed by resource.
func (c *Connection) missingPermissions(ctx context.Context, needed []authorizationv1.ResourceAttributes) ([]authorizationv1.ResourceAttributes, error) {
	var missing []authorizationv1.ResourceAttributes
	for len(needed) > 0 {
		end := slices.IndexFunc(needed, func(one authorizationv1.ResourceAttributes) bool { return one.Namespace != needed[0].Namespace })
		if end < 0 {
			end = len(needed)
		}
		lacks, err := c.missingPermissionsIn(ctx, needed[0].Namespace, needed[:end])
		if err != nil {
			return nil, err
		}
		missing, needed = append(missing, lacks...), needed[end:]
	}
	return missing, nil
}

// missingPermissionsIn returns the missing permissions in one namespace; an empty name means all namespaces.
func (c *Connection) missingPermissionsIn(ctx context.Context, namespace string, needed []authorizationv1.ResourceAttributes) ([]authorizationv1.ResourceAttributes, error) {
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: cmp.Or(namespace, noNamespace)}}
	err := c.createReview(ctx, "selfsubjectrulesreviews", "SelfSubjectRulesReview", review)
	switch {
	case err == nil && !review.Status.Incomplete:
		return rbac.MissingAttributes(needed, review.Status.ResourceRules), nil
	case err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) && !apierrors.IsBadRequest(err) && !apierrors.IsInvalid(err):
		return nil, err
	}
	unverified := rbac.MissingAttributes(needed, review.Status.ResourceRules)
	var missing []authorizationv1.ResourceAttributes
	for len(unverified) > 0 {
		end := slices.IndexFunc(unverified, func(one authorizationv1.ResourceAttributes) bool {
			return one.Group != unverified[0].Group || one.Resource != unverified[0].Resource
		})
		if end < 0 {
			end = len(unverified)
		}
		denied, err := c.deniedVerbs(ctx, unverified[:end])
		if err != nil {
			return nil, err
		}
		missing, unverified = append(missing, denied...), unverified[end:]
	}
	return missing, nil
}

// deniedVerbs returns the verbs on one resource that the target does not allow.
func (c *Connection) deniedVerbs(ctx context.Context, verbs []authorizationv1.ResourceAttributes) ([]authorizationv1.ResourceAttributes, error) {
	all := verbs[0]
	all.Verb = rbacv1.VerbAll
	if allowed, err := c.isAllowed(ctx, all); allowed || err != nil {
		return nil, err
	}
	var denied []authorizationv1.ResourceAttributes
	for _, one := range verbs {
		allowed, err := c.isAllowed(ctx, one)
		if err != nil {
			return nil, err
		}
		if !allowed {
			denied = append(denied, one)
		}
	}
	return denied, nil
}

func (c *Connection) isAllowed(ctx context.Context, attributes authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes}}
	err := c.createReview(ctx, "selfsubjectaccessreviews", "SelfSubjectAccessReview", review)
	return review.Status.Allowed, err
}

// createReview creates a review of the hub's own permissions, and reads the answer into it.
func (c *Connection) createReview(ctx context.Context, resource, kind string, review any) error {
	ctx, done := withTimeout(ctx, requestTimeout)
	defer done()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(review)
	if err != nil {
		return fmt.Errorf("cannot write a %s: %w", kind, err)
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(authorizationv1.SchemeGroupVersion.WithKind(kind))
	answer, err := c.client.Resource(authorizationv1.SchemeGroupVersion.WithResource(resource)).Create(ctx, object, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("cannot read the hub's permissions on the target: %w", err)
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(answer.Object, review)
}

// countForbidden wraps a transport, and counts the requests that the target forbids.
func (p *permissionChecker) countForbidden(next http.RoundTripper) http.RoundTripper {
	return roundTripperFunc(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err == nil && response.StatusCode == http.StatusForbidden {
			p.forbiddenCount.Add(1)
		}
		return response, err
	})
}

type roundTripperFunc func(*http.Request) (*http.Response, error)

func (r roundTripperFunc) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }
