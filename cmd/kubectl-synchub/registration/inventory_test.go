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

package registration

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

// kcp may refuse a Secret while it accepts the claims of a new binding. The fake stands for kcp, because the moment is too short to meet.
func TestEnsureSecretWhileClaimsChange(t *testing.T) {
	const claimed = `metadata.labels[claimed.internal.apis.kcp.io/akvMfd]: Invalid value: "": must be "ctwrJR"`
	for name, test := range map[string]struct {
		reason   string
		requests int
	}{
		"claims change":           {claimed, 2},
		"a permission is missing": {`User "operator" cannot create resource "secrets"`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			g, requests := NewWithT(t), 0
			workspace := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithInterceptorFuncs(interceptor.Funcs{
				Create: func(ctx context.Context, to client.WithWatch, object client.Object, options ...client.CreateOption) error {
					if requests++; requests == 1 {
						return apierrors.NewForbidden(corev1.Resource("secrets"), object.GetName(), errors.New(test.reason))
					}
					return to.Create(ctx, object, options...)
				},
			}).Build()
			inventory := &Inventory{Client: workspace, Namespace: edgev2alpha1.DefaultCredentialNamespace}
			syncTarget := &edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{Name: "florin", UID: "florin-uid"}}

			err := inventory.EnsureSecret(t.Context(), syncTarget, []byte("credential"), nil)
			g.Expect(requests).To(Equal(test.requests))
			if test.requests == 1 {
				g.Expect(err).To(MatchError(ContainSubstring(test.reason)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(inventory.Kubeconfig(t.Context(), syncTarget)).To(Equal([]byte("credential")))
		})
	}
}
