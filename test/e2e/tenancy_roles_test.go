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

package e2e

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/synchub-dev/synchub/test/framework"
)

// mayCreate reports whether a ServiceAccount of the namespace may create a resource there.
func mayCreate(ctx context.Context, client kubernetes.Interface, namespace, account, group, resource string) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               "system:serviceaccount:" + namespace + ":" + account,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "create", Group: group, Resource: resource},
	}}
	answer, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return answer.Status.Allowed, nil
}

var _ = Describe("ClusterRoles for tenants", Label("placement"), func() {
	It("are as the page about security describes them", func(ctx SpecContext) {
		const ns = "tenant-roles"
		cluster := target("florin")
		client, err := kubernetes.NewForConfig(cluster)
		Expect(err).NotTo(HaveOccurred())
		apply(ctx, cluster, documents(namespace(ns), blockWith(page("security.md"), yamlBlock, "name: synchub-team}")))
		DeferCleanup(func(ctx SpecContext) {
			for _, name := range []string{"synchub-team", "synchub-team-rbac"} {
				Expect(framework.Delete(ctx, cluster, clusterRoles, "", name)).To(Succeed())
			}
		})
		for role, mayWriteRoles := range map[string]bool{"edit": false, "admin": true, "synchub-team": true} {
			apply(ctx, cluster, fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: %s, namespace: %s}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %s}, subjects: [{kind: ServiceAccount, namespace: %s, name: %s}]}`, role, ns, role, ns, role))
			for _, right := range []struct {
				group, resource string
				want            bool
			}{
				{"apps", "deployments", true}, {"rbac.authorization.k8s.io", "roles", mayWriteRoles}, {"rbac.authorization.k8s.io", "rolebindings", mayWriteRoles},
				{"", "resourcequotas", false}, {"", "limitranges", false},
			} {
				Eventually(mayCreate).WithContext(ctx).WithArguments(client, ns, role, right.group, right.resource).Should(Equal(right.want), "%s: create %s", role, right.resource)
			}
		}
	}, NodeTimeout(2*time.Minute))
})
