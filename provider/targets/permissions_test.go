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
	"encoding/json"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/rbac"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

var widgetPermissions = rbac.RequiredAttributes([]rbac.Resource{{Group: "example.org", Resource: "widgets", Down: true, Up: true}}, rbac.Tenancy{})

// A permission in one namespace only is missing, and one that is granted later is found by the next review.
func TestPermissions(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	ctx := t.Context()
	target := steady(t)
	namespace := newNamespace(t, target)
	g.Expect(framework.Apply(ctx, target.Config, `
{apiVersion: v1, kind: ServiceAccount, metadata: {name: asking, namespace: `+namespace+`}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: `+namespace+`}
rules:
- {apiGroups: [example.org], resources: [widgets], verbs: [get, list, watch, create, patch]}
- {apiGroups: [""], resources: [namespaces], verbs: ["*"]}
- {apiGroups: [apiextensions.k8s.io], resources: ["*"], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: `+namespace+`}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: `+namespace+`}
subjects: [{kind: ServiceAccount, name: asking, namespace: `+namespace+`}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: more, namespace: `+namespace+`}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: asking, namespace: `+namespace+`}]
`)).To(Succeed())
	kubeconfig, err := target.ServiceAccountKubeconfig(ctx, namespace, "asking")
	g.Expect(err).NotTo(HaveOccurred())
	now := clocktesting.NewFakeClock(time.Now())
	registry := newRegistry(ctx, t, now)
	connection, err := registry.Connect(syncTarget, kubeconfig, kcp.Limits{})
	g.Expect(err).NotTo(HaveOccurred())
	suite.Eventually(t, func(g Gomega) { g.Expect(connection.Health.IsUp()).To(BeTrue()) })
	missing := func() string {
		access := connection.Permissions.Get(widgetPermissions, time.Time{})
		if !access.Known {
			return "unknown " + access.Problem
		}
		return rbac.DescribeAttributes(access.Missing, 9)
	}
	suite.Eventually(t, func(g Gomega) { g.Expect(missing()).To(Equal("widgets.example.org (delete)")) })

	g.Expect(framework.Apply(ctx, target.Config, `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: `+namespace+`}
rules:
- {apiGroups: [example.org], resources: [widgets], verbs: [get, list, watch, create, patch, delete]}
- {apiGroups: [""], resources: [namespaces], verbs: ["*"]}
- {apiGroups: [apiextensions.k8s.io], resources: ["*"], verbs: [get, list, watch]}
`)).To(Succeed())
	suite.Eventually(t, func(g Gomega) {
		now.Step(2 * permissionCheckInterval)
		g.Expect(missing()).To(BeEmpty())
	})
}

// reviewServer is a server that answers access reviews, and counts them.
type reviewServer struct {
	rules  authorizationv1.SubjectRulesReviewStatus
	refuse int
	allow  func(authorizationv1.ResourceAttributes) bool

	rulesReviews, accessReviews atomic.Int64
}

func (r *reviewServer) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	answer := func(review any) { _ = json.NewEncoder(writer).Encode(review) }
	writer.Header().Set("Content-Type", "application/json")
	switch request.URL.Path {
	case "/version":
		answer(map[string]string{"gitVersion": "v1.35.4"})
	case "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews":
		r.rulesReviews.Add(1)
		if r.refuse != 0 {
			writer.WriteHeader(r.refuse)
			return
		}
		review := &authorizationv1.SelfSubjectRulesReview{Status: r.rules}
		review.SetGroupVersionKind(authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectRulesReview"))
		answer(review)
	case "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews":
		r.accessReviews.Add(1)
		review := &authorizationv1.SelfSubjectAccessReview{}
		_ = json.NewDecoder(request.Body).Decode(review)
		review.Status.Allowed = r.allow(*review.Spec.ResourceAttributes)
		answer(review)
	default:
		writer.WriteHeader(http.StatusForbidden)
	}
}

func TestPermissionReviews(t *testing.T) {
	everything := []authorizationv1.ResourceRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}}
	all := func(authorizationv1.ResourceAttributes) bool { return true }
	onlyReading := func(attributes authorizationv1.ResourceAttributes) bool {
		return attributes.Verb == "get" || attributes.Verb == "list" || attributes.Verb == "watch"
	}
	for name, test := range map[string]struct {
		reviewer *reviewServer
		missing  string
		problem  bool
		// reviews is the number of reviews of single permissions.
		reviews int
	}{
		"all is allowed by roles": {reviewer: &reviewServer{rules: authorizationv1.SubjectRulesReviewStatus{ResourceRules: everything}}},
		"incomplete rules are enough": {
			reviewer: &reviewServer{rules: authorizationv1.SubjectRulesReviewStatus{ResourceRules: everything, Incomplete: true}},
		},
		"complete rules": {
			reviewer: &reviewServer{},
			missing:  "namespaces (create, get, list, patch, watch), customresourcedefinitions.apiextensions.k8s.io (get, list, watch), widgets.example.org (create, delete, get, list, patch, watch)",
		},
		"another authorizer allows everything": {
			reviewer: &reviewServer{rules: authorizationv1.SubjectRulesReviewStatus{Incomplete: true}, allow: all}, reviews: 3,
		},
		"another authorizer allows some": {
			reviewer: &reviewServer{rules: authorizationv1.SubjectRulesReviewStatus{Incomplete: true}, allow: onlyReading}, reviews: 3 + len(widgetPermissions),
			missing: "namespaces (create, patch), widgets.example.org (create, delete, patch)",
		},
		"rules review forbidden": {reviewer: &reviewServer{refuse: http.StatusForbidden, allow: all}, reviews: 3},
		"no answer":              {reviewer: &reviewServer{refuse: http.StatusInternalServerError}, problem: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			server := suite.ServeTLS(t, test.reviewer)
			connection := connectTo(t, kubeconfigFor(t, server))
			suite.Eventually(t, func(g Gomega) {
				access := connection.Permissions.Get(widgetPermissions, time.Time{})
				g.Expect(access.Known).To(Equal(!test.problem))
				if test.problem {
					g.Expect(access.Problem).NotTo(BeEmpty())
				} else {
					g.Expect(access.Problem).To(BeEmpty())
				}
				g.Expect(rbac.DescribeAttributes(access.Missing, 9)).To(Equal(test.missing))
			})
			g.Expect(test.reviewer.rulesReviews.Load()).To(BeEquivalentTo(1))
			g.Expect(test.reviewer.accessReviews.Load()).To(BeEquivalentTo(test.reviews))
		})
	}
}

func TestPermissionReviewIsDue(t *testing.T) {
	checkedAt := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	other := rbac.RequiredAttributes([]rbac.Resource{{Resource: "secrets", Down: true}}, rbac.Tenancy{})
	for name, test := range map[string]struct {
		running, never bool
		needed         []authorizationv1.ResourceAttributes
		refusals       int64
		after          time.Duration
		due            bool
	}{
		"never reviewed":      {never: true, due: true},
		"just now":            {after: time.Second},
		"a while ago":         {after: permissionCheckInterval - time.Second},
		"long ago":            {after: permissionCheckInterval, due: true},
		"long ago, running":   {after: permissionCheckInterval, running: true},
		"other permissions":   {after: time.Second, needed: other, due: true},
		"refused just now":    {after: time.Second, refusals: 3},
		"refused a while ago": {after: forbiddenCheckInterval, refusals: 3, due: true},
		"not refused, later":  {after: forbiddenCheckInterval},
	} {
		t.Run(name, func(t *testing.T) {
			a := &PermissionChecker{client: &client{}, checking: test.running, requested: hashAttributes(widgetPermissions), checkedAt: checkedAt, nextCheck: checkedAt.Add(permissionCheckInterval)}
			if test.never {
				a.checkedAt = time.Time{}
			}
			a.client.forbidden.Add(test.refusals)
			needed := test.needed
			if needed == nil {
				needed = widgetPermissions
			}
			if due := a.isCheckDue(hashAttributes(needed), checkedAt.Add(test.after)); due != test.due {
				t.Errorf("it is due: %v", due)
			}
		})
	}
}

func TestMissingPermissionsAreReviewedWithABackoff(t *testing.T) {
	a := &PermissionChecker{}
	for i, want := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second} {
		if pause := a.nextBackoff(i == 0); pause != want {
			t.Errorf("the pause is %s, want %s", pause, want)
		}
	}
	for range 10 {
		a.nextBackoff(false)
	}
	if pause := a.nextBackoff(false); pause != permissionCheckInterval {
		t.Errorf("it grows to %s", pause)
	}
	if pause := a.nextBackoff(true); pause != missingCheckInterval {
		t.Errorf("after a change it is %s", pause)
	}
}

// Permissions that are trusted from before the connection are reviewed only later, unless other permissions are needed or the
// target refuses a request.
func TestTrustedPermissionsAreNotReviewed(t *testing.T) {
	begun := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	other := rbac.RequiredAttributes([]rbac.Resource{{Resource: "secrets", Down: true}}, rbac.Tenancy{})
	for name, test := range map[string]struct {
		needed   []authorizationv1.ResourceAttributes
		refusals int64
		after    time.Duration
		reviews  bool
	}{
		"the same":                {needed: widgetPermissions, after: 59 * time.Second},
		"the same, a while later": {needed: widgetPermissions, after: time.Minute, reviews: true},
		"other permissions":       {needed: other, reviews: true},
		"a request was refused":   {needed: widgetPermissions, refusals: 1, after: forbiddenCheckInterval, reviews: true},
	} {
		t.Run(name, func(t *testing.T) {
			now := clocktesting.NewFakeClock(begun)
			checker := &PermissionChecker{env: &environment{clock: now}, client: &client{}, health: &HealthMonitor{}}
			trusted := begun.Add(time.Minute)
			if got := checker.Get(widgetPermissions, trusted); got.Known {
				t.Error("the result is known without a review")
			}
			checker.client.forbidden.Add(test.refusals)
			now.Step(test.after)
			checker.Get(test.needed, trusted)
			if reviews := checker.isCheckDue(hashAttributes(test.needed), now.Now()); reviews != test.reviews {
				t.Errorf("due: %v, want %v", reviews, test.reviews)
			}
		})
	}
}
