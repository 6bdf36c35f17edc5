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

package chart

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/synchub-dev/synchub/test/framework/chart"
)

// leaseName is the leader's Lease. All access reviews are about objects of this name.
const leaseName = "synchub"

// hubRights returns all permissions of the hub, as "<verb> <group>/<resource> in <scope>".
func hubRights() map[string]bool {
	rights := map[string]bool{}
	grant := func(scopes []string, resource string, verbs ...string) {
		for _, scope := range scopes {
			for _, verb := range verbs {
				rights[fmt.Sprintf("%s %s in %s", verb, resource, scope)] = true
			}
		}
	}
	everywhere, own := []string{"the cluster"}, []string{namespace}
	grant(everywhere, "synchub.dev/publishedresources", "get", "list", "watch", "patch")
	grant(everywhere, "synchub.dev/publishedresources/status", "get", "update", "patch")
	grant(everywhere, "apiextensions.k8s.io/customresourcedefinitions", "get", "list", "watch")
	grant(own, "coordination.k8s.io/leases", "get", "list", "watch", "create", "update")
	grant(own, "/configmaps", "get", "list", "watch")
	grant(own, "/events", "create", "patch")
	grant(own, "events.k8s.io/events", "create", "patch")
	grant([]string{"default"}, "events.k8s.io/events", "create", "patch") // of PublishedResources
	return rights
}

// checkNamedRights reviews what the hub may do with objects of certain names only.
func (c *cluster) checkNamedRights(t *testing.T) {
	// The API server takes a request for a Namespace for one within it.
	namespaceOf := func(name string) authorizationv1.ResourceAttributes {
		return authorizationv1.ResourceAttributes{Namespace: name, Verb: "get", Resource: "namespaces", Name: name}
	}
	for question, want := range map[authorizationv1.ResourceAttributes]bool{
		namespaceOf(namespace):     true,
		namespaceOf("kube-system"): false,
		{Namespace: namespace, Verb: "create", Group: "coordination.k8s.io", Resource: "leases"}:                               true,
		{Namespace: namespace, Verb: "get", Group: "coordination.k8s.io", Resource: "leases", Name: "synchub-shard-00"}:        true,
		{Namespace: namespace, Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Name: "synchub-shard-63"}:     true,
		{Namespace: "kube-system", Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Name: "of-somebody-else"}: false,
	} {
		if may, err := c.may(contextFor(t), chart.ServiceAccount, question); err != nil || may != want {
			t.Errorf("the hub may %s %s %s: %t, %v", question.Verb, question.Resource, question.Name, may, err)
		}
	}
}

// checkRights reviews every verb on every resource that the API server serves, in the hub's namespace, in another
// namespace, and in the whole cluster. Permissions that every account has do not count. More are rights beside [hubRights].
func (c *cluster) checkRights(t *testing.T, more ...string) {
	ctx := contextFor(t)
	var lock sync.Mutex
	allowed := map[string]bool{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	questions := c.questions(t)
	if len(questions) < 1000 {
		t.Fatalf("only %d questions: the server's resources were not found", len(questions))
	}
	for name, question := range questions {
		group.Go(func() error {
			may, err := c.may(ctx, chart.ServiceAccount, question)
			if err != nil || !may {
				return err
			}
			anyone, err := c.may(ctx, "an-account-without-rights", question)
			if err != nil || anyone {
				return err
			}
			lock.Lock()
			defer lock.Unlock()
			allowed[name] = true
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	c.checkNamedRights(t)
	want := hubRights()
	for _, right := range more {
		want[right] = true
	}
	for _, right := range slices.Sorted(maps.Keys(want)) {
		if !allowed[right] {
			t.Errorf("the hub may not %s", right)
		}
	}
	for _, right := range slices.Sorted(maps.Keys(allowed)) {
		if !want[right] {
			t.Errorf("the hub may %s, which it does not need", right)
		}
	}
}

func (c *cluster) questions(t *testing.T) map[string]authorizationv1.ResourceAttributes {
	t.Helper()
	verbs := []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "impersonate", "bind", "escalate", "*"}
	_, lists, err := c.kubernetes.Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	questions := map[string]authorizationv1.ResourceAttributes{}
	for _, list := range lists {
		apiGroup, _, found := strings.Cut(list.GroupVersion, "/")
		if !found {
			apiGroup = ""
		}
		for _, resource := range append(list.APIResources, metav1.APIResource{Name: "*"}) {
			name, subresource, _ := strings.Cut(resource.Name, "/")
			scopes := map[string]string{"the cluster": ""}
			if resource.Namespaced {
				scopes = map[string]string{"the cluster": "", namespace: namespace, "kube-system": "kube-system", "default": "default"}
			}
			for scope, inNamespace := range scopes {
				for _, verb := range verbs {
					questions[fmt.Sprintf("%s %s/%s in %s", verb, apiGroup, resource.Name, scope)] = authorizationv1.ResourceAttributes{
						Namespace: inNamespace, Verb: verb, Group: apiGroup, Resource: name, Subresource: subresource, Name: leaseName,
					}
				}
			}
		}
	}
	return questions
}

func (c *cluster) may(ctx context.Context, account string, question authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               "system:serviceaccount:" + namespace + ":" + account,
		Groups:             []string{"system:authenticated", "system:serviceaccounts", "system:serviceaccounts:" + namespace},
		ResourceAttributes: &question,
	}}
	answer, err := c.kubernetes.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("ask whether %s may %s %s: %w", account, question.Verb, question.Resource, err)
	}
	return answer.Status.Allowed, nil
}
