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
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/test/framework"
)

// Nobody granted its user a workspace below a mailbox, and no limit of the mailbox would count it.
var _ = Describe("the administrator of a mailbox", Label("escapes"), func() {
	It("has the namespace default, and cannot create child workspaces", func(ctx SpecContext) {
		inventory := sharedInventory()
		mailbox := register(ctx, inventory, "hosting", "hosting")
		Expect(framework.Exists(ctx, mailbox, namespaces, "", "default")).To(BeTrue())
		patch(ctx, inventory.Config, syncTargets, "", "hosting", `{"spec": {"mailboxAccess": [
			{"clusterRole": "cluster-admin", "subjects": [{"kind": "User", "name": "mallory"}]}]}}`)

		mallory := rest.CopyConfig(mailbox)
		mallory.Impersonate = rest.ImpersonationConfig{UserName: "mallory", Groups: []string{"system:authenticated"}}
		Eventually(framework.Apply).WithContext(ctx).WithArguments(mallory, `
apiVersion: apis.kcp.io/v1alpha2
kind: APIBinding
metadata: {name: tenancy}
spec: {reference: {export: {path: root, name: tenancy.kcp.io}}}
`).Should(Succeed())
		DeferCleanup(func(ctx SpecContext) { remove(ctx, mailbox, apiBindings, "", "tenancy") })
		Eventually(framework.Apply).WithContext(ctx).WithArguments(mallory, `
apiVersion: tenancy.kcp.io/v1alpha1
kind: Workspace
metadata: {name: own}
spec: {type: {name: universal, path: root}}
`).Should(MatchError(ContainSubstring("cannot have any child")))
	}, NodeTimeout(2*time.Minute))
})
