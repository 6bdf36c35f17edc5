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

package bootstrap_test

import (
	"testing"

	"github.com/kcp-dev/logicalcluster/v3"
	corev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/synchub-dev/synchub/provider/bootstrap"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

func TestIdentify(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	provider := newProvider(t, "identified")
	identify := func() (bootstrap.Identity, error) {
		return bootstrap.ReadIdentity(t.Context(), framework.InWorkspace(provider.HubConfig, provider.path), provider.path)
	}
	const advice = "run `synchub init --provider-workspace root:identified --hub-user <user>` as its administrator"
	_, err := identify()
	g.Expect(err).To(MatchError(ContainSubstring(advice)), "no such workspace")
	provider.create(t)
	// kcp refuses all requests to a new workspace for a moment.
	suite.Eventually(t, func(g Gomega) {
		_, err := identify()
		g.Expect(err).To(MatchError(ContainSubstring(advice)), "no rights in it")
	})

	provider.bootstrapped(t)
	var identity bootstrap.Identity
	suite.Eventually(t, func(g Gomega) {
		var err error
		identity, err = identify()
		g.Expect(err).NotTo(HaveOccurred())
	})
	logicalCluster := &corev1alpha1.LogicalCluster{}
	provider.read(t, logicalCluster, named(corev1alpha1.LogicalClusterName))
	secret := &corev1.Secret{}
	provider.read(t, secret, hashKeySecret)
	g.Expect(identity).To(Equal(bootstrap.Identity{HubUID: logicalCluster.UID, Cluster: logicalcluster.From(logicalCluster), HashKey: secret.Data[bootstrap.HashKey]}))
	g.Expect(identity.HubUID).NotTo(BeEmpty())
	g.Expect(identity.HashKey).To(HaveLen(32))

	another := newProvider(t, "another").bootstrapped(t)
	suite.Eventually(t, func(g Gomega) {
		other, err := bootstrap.ReadIdentity(t.Context(), framework.InWorkspace(another.HubConfig, another.path), another.path)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(other.HubUID).NotTo(Equal(identity.HubUID))
		g.Expect(other.HashKey).NotTo(Equal(identity.HashKey))
	})

	provider.change(t, secret, hashKeySecret, func() { secret.Data = nil })
	_, err = identify()
	g.Expect(err).To(MatchError(And(ContainSubstring("synchub init"), ContainSubstring(`default/synchub-hash-key has no key "key"`))))
	provider.bootstrapped(t)
	g.Expect(identify()).To(HaveField("HashKey", HaveLen(32)))
}
