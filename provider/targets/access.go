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
	"math/rand/v2"
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

	"github.com/synchub-dev/synchub/provider/requests"
	"github.com/synchub-dev/synchub/provider/rights"
)

const (
	// accessInterval is how often a target is asked what the hub may do, if nothing gives reason to ask sooner; up to a
	// fifth of it is added at random.
	accessInterval = 10 * time.Minute
	// refusedInterval is how soon it is asked again after it has refused a request.
	refusedInterval = 30 * time.Second
	// missingInterval is how soon it is asked again when it has just begun to forbid something: somebody is likely to grant
	// that now. As long as the answer stays the same, it is asked half as often each time.
	missingInterval = 10 * time.Second
	// attendedInterval is how often OnChange is called for a target of which nothing is new, by others.
	attendedInterval = time.Minute
	// unansweredInterval is how soon it is asked again when it did not answer.
	unansweredInterval = time.Minute
	// nowhere is asked about instead of a namespace. None can be called so, and so nothing is granted there but what is
	// granted in all.
	nowhere = "_"
)

// Access is what is known of the hub's rights on a target. The zero value knows nothing.
type Access struct {
	// Known is true once the target has said what it allows.
	Known bool
	// Missing is what is needed and not allowed.
	Missing []authorizationv1.ResourceAttributes
	// Problem is why the target has not said it.
	Problem string
}

func (a Access) equal(other Access) bool {
	return a.Known == other.Known && a.Problem == other.Problem && slices.Equal(a.Missing, other.Missing)
}

// access remembers what the target said, and when to ask again.
type access struct {
	// refusals counts the requests of all kinds that the target has forbidden.
	refusals atomic.Int64

	lock   sync.Mutex
	known  Access
	asking bool
	// question stands for what was asked, or trusted, last, at a time and after so many refusals; next is when to ask again.
	question    uint64
	asked, next time.Time
	refused     int64
	// pause is how long the target was not asked the last time that it forbade something.
	pause time.Duration
}

// Access returns what is known of the rights that are needed, at once. If there is reason to, it has the target asked, and
// OnChange called when that shows something new. Who knows it already, without this connection, has the same question asked
// only after he has ceased to trust that.
func (c *Connection) Access(needed []authorizationv1.ResourceAttributes, trusted time.Time) Access {
	up := c.Up()
	c.access.lock.Lock()
	defer c.access.lock.Unlock()
	now, question := c.clock.Now(), questionFor(needed)
	if c.access.asked.IsZero() && now.Before(trusted) {
		c.access.asked, c.access.next, c.access.question = now, trusted, question
	}
	if up && c.access.isDue(question, now) {
		c.access.asking, c.access.asked, c.access.question = true, now, question
		c.run(func(ctx context.Context) { c.ascertain(requests.As(ctx, requests.Background), needed) })
	}
	return c.access.known
}

var questions = maphash.MakeSeed()

// questionFor returns what tells these rights from others. A connection that kept the rights themselves would hold 128 bytes
// for each of a resource's six verbs.
func questionFor(needed []authorizationv1.ResourceAttributes) uint64 {
	var hash maphash.Hash
	hash.SetSeed(questions)
	for _, one := range needed {
		maphash.WriteComparable(&hash, one)
	}
	return hash.Sum64()
}

// isDue is called with the lock held.
func (a *access) isDue(question uint64, now time.Time) bool {
	switch {
	case a.asking:
		return false
	case a.asked.IsZero(), question != a.question:
		return true
	case a.refusals.Load() != a.refused && now.Sub(a.asked) >= refusedInterval:
		return true
	default:
		return !now.Before(a.next)
	}
}

// ascertain asks the target and remembers the answer.
func (c *Connection) ascertain(ctx context.Context, needed []authorizationv1.ResourceAttributes) {
	missing, err := c.missing(ctx, needed)
	found, next := Access{Known: true, Missing: missing}, accessInterval+time.Duration(rand.Float64()*0.2*float64(accessInterval)) //nolint:gosec // jitter needs no secrecy
	if err != nil {
		found, next = Access{Problem: c.Describe(err)}, unansweredInterval
	}
	c.access.lock.Lock()
	changed := !c.access.known.equal(found)
	if len(missing) > 0 {
		next = min(c.access.pauseWhileMissing(changed), next)
	}
	c.access.known, c.access.asking = found, false
	c.access.next = c.clock.Now().Add(next)
	c.access.refused = c.access.refusals.Load()
	c.access.lock.Unlock()
	if changed && ctx.Err() == nil {
		c.onChange(c.SyncTarget)
	}
	if next < attendedInterval {
		c.run(func(ctx context.Context) { c.remind(ctx, next) })
	}
}

// pauseWhileMissing returns how soon to ask again. It is called with the lock held.
func (a *access) pauseWhileMissing(changed bool) time.Duration {
	if changed || a.pause == 0 {
		a.pause = missingInterval
	} else {
		a.pause = min(2*a.pause, accessInterval)
	}
	return a.pause
}

// remind has Access called when it is time to ask again.
func (c *Connection) remind(ctx context.Context, after time.Duration) {
	select {
	case <-ctx.Done():
	case <-c.clock.After(after):
		c.onChange(c.SyncTarget)
	}
}

// missing returns what of the needed, which is sorted by namespace, the target does not allow. One question for each answers that where all comes from roles; for the
// rest, which other authorizers may allow, it asks resource by resource.
func (c *Connection) missing(ctx context.Context, needed []authorizationv1.ResourceAttributes) ([]authorizationv1.ResourceAttributes, error) {
	var missing []authorizationv1.ResourceAttributes
	for len(needed) > 0 {
		end := slices.IndexFunc(needed, func(one authorizationv1.ResourceAttributes) bool { return one.Namespace != needed[0].Namespace })
		if end < 0 {
			end = len(needed)
		}
		lacks, err := c.missingIn(ctx, needed[0].Namespace, needed[:end])
		if err != nil {
			return nil, err
		}
		missing, needed = append(missing, lacks...), needed[end:]
	}
	return missing, nil
}

// missingIn is missing for a namespace, or for all if that is empty.
func (c *Connection) missingIn(ctx context.Context, namespace string, needed []authorizationv1.ResourceAttributes) ([]authorizationv1.ResourceAttributes, error) {
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: cmp.Or(namespace, nowhere)}}
	err := c.review(ctx, "selfsubjectrulesreviews", "SelfSubjectRulesReview", review)
	switch {
	case err == nil && !review.Status.Incomplete:
		return rights.Missing(needed, review.Status.ResourceRules), nil
	case err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) && !apierrors.IsBadRequest(err) && !apierrors.IsInvalid(err):
		return nil, err
	}
	doubtful := rights.Missing(needed, review.Status.ResourceRules)
	var missing []authorizationv1.ResourceAttributes
	for len(doubtful) > 0 {
		end := slices.IndexFunc(doubtful, func(one authorizationv1.ResourceAttributes) bool {
			return one.Group != doubtful[0].Group || one.Resource != doubtful[0].Resource
		})
		if end < 0 {
			end = len(doubtful)
		}
		denied, err := c.denied(ctx, doubtful[:end])
		if err != nil {
			return nil, err
		}
		missing, doubtful = append(missing, denied...), doubtful[end:]
	}
	return missing, nil
}

// denied returns which verbs on one resource are not allowed.
func (c *Connection) denied(ctx context.Context, verbs []authorizationv1.ResourceAttributes) ([]authorizationv1.ResourceAttributes, error) {
	all := verbs[0]
	all.Verb = rbacv1.VerbAll
	if allowed, err := c.allows(ctx, all); allowed || err != nil {
		return nil, err
	}
	var denied []authorizationv1.ResourceAttributes
	for _, one := range verbs {
		allowed, err := c.allows(ctx, one)
		if err != nil {
			return nil, err
		}
		if !allowed {
			denied = append(denied, one)
		}
	}
	return denied, nil
}

func (c *Connection) allows(ctx context.Context, attributes authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes}}
	err := c.review(ctx, "selfsubjectaccessreviews", "SelfSubjectAccessReview", review)
	return review.Status.Allowed, err
}

// review lets the target fill in a review of the hub's own rights.
func (c *Connection) review(ctx context.Context, resource, kind string, review any) error {
	ctx, done := limited(ctx, requestTimeout)
	defer done()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(review)
	if err != nil {
		return fmt.Errorf("cannot write a %s: %w", kind, err)
	}
	question := &unstructured.Unstructured{Object: content}
	question.SetGroupVersionKind(authorizationv1.SchemeGroupVersion.WithKind(kind))
	answer, err := c.client.Resource(authorizationv1.SchemeGroupVersion.WithResource(resource)).Create(ctx, question, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("the target does not say what the hub may do there: %w", err)
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(answer.Object, review)
}

// countRefusals notes what the target forbids.
func (a *access) countRefusals(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err == nil && response.StatusCode == http.StatusForbidden {
			a.refusals.Add(1)
		}
		return response, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }
