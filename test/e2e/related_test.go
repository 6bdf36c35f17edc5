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
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/synchub-dev/synchub/test/framework"
)

var _ = Describe("related objects", func() {
	It("are synced with their primaries from either side, shared, and deleted with the last one", func(ctx SpecContext) {
		const ns, elsewhere, group = "kin", "kin-elsewhere", "kin.example.com"
		databases := custom(group, "v1", "databases", "Database")
		gvr := databases.GroupVersionResource
		define(ctx, target("hosting"), databases)
		define(ctx, target("florin"), databases)
		publishAs(ctx, "kin", `
  resource: {group: kin.example.com, resource: databases}
  related:
  - identifier: credentials
    origin: Mailbox
    resource: {version: v1, resource: secrets}
    object: {reference: {path: "spec.users[*].secretName"}}
    mutation: {down: [{template: {path: "metadata.labels['of']", template: database}}]}
  - identifier: settings
    origin: Mailbox
    resource: {version: v1, resource: configmaps}
    object: {selector: {matchLabels: {database: "{{ .Primary.metadata.name }}"}}}
  - identifier: foreign
    origin: Mailbox
    resource: {version: v1, resource: configmaps}
    object: {reference: {path: spec.foreign, nameField: name, namespaceField: namespace}}
  - identifier: connection
    origin: Target
    resource: {version: v1, resource: secrets}
    object: {template: "{{ .Primary.metadata.name }}-connection"}
  - identifier: certificates
    origin: Target
    resource: {version: v1, resource: secrets}
    object: {owner: {}}
    naming: {name: "{{ .Primary.metadata.name }}-{{ .Object.metadata.name }}"}
`)
		eventuallyPublished(ctx, "kin")
		florin, mailbox := target("florin"), sharedMailbox(ctx, "florin")
		labelled := func(name, database string) string {
			return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s, labels: {database: %s}}\ndata: {entry: %s}", name, ns, database, name)
		}
		onlyDatabases := selecting(ns, gvr)
		apply(ctx, mailbox, documents(namespace(ns), namespace(elsewhere), secret(ns, "shared"), secret(ns, "admin"), secret(ns, "unrelated"),
			labelled("tuning", "orders"), configMap(elsewhere, "secret-plans", "x"),
			databases.object(ns, "orders", "spec: {users: [{secretName: shared}, {secretName: admin}], foreign: {name: secret-plans, namespace: "+elsewhere+"}}"),
			databases.object(ns, "bills", "spec: {users: [{secretName: shared}]}"), onlyDatabases))
		By("downsyncing by name and by label, and nothing else")
		for _, name := range []string{"shared", "admin"} {
			eventuallyExists(ctx, florin, secrets, ns, name)
			Expect(value(ctx, florin, secrets, ns, name, "metadata", "labels", "of")).To(Equal("database"))
		}
		eventuallyExists(ctx, florin, configMaps, ns, "tuning")
		apply(ctx, mailbox, labelled("late", "bills"))
		eventuallyExists(ctx, florin, configMaps, ns, "late")
		Expect(framework.Exists(ctx, florin, secrets, ns, "unrelated")).To(BeFalse())
		By("never using a namespace that no config selects")
		Eventually(reasons).WithContext(ctx).WithArguments(mailbox, ns, "orders").Should(ContainElement("RuleFailed"))
		Expect(framework.Exists(ctx, florin, configMaps, elsewhere, "secret-plans")).To(BeFalse())
		By("upsyncing by name, also when created later, and by owner")
		apply(ctx, florin, documents(secret(ns, "orders-connection"), secret(ns, "stranger")))
		eventuallyExists(ctx, mailbox, secrets, ns, "orders-connection")
		owner := value(ctx, florin, gvr, ns, "bills", "metadata", "uid")
		apply(ctx, florin, fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: tls, namespace: %s, ownerReferences: [{apiVersion: %s/v1, kind: Database, name: bills, uid: %s}]}\nstringData: {key: value}", ns, group, owner))
		eventuallyExists(ctx, mailbox, secrets, ns, "bills-tls")
		Expect(framework.Exists(ctx, mailbox, secrets, ns, "stranger")).To(BeFalse())
		By("not changing after a restart of the hub")
		before := identities(ctx, florin, secrets, ns, "")
		above := identities(ctx, mailbox, secrets, ns, "")
		Expect(hub.Kill9()).To(Succeed())
		startHub(ctx)
		apply(ctx, mailbox, databases.object(ns, "after", "spec: {users: []}"))
		eventuallyExists(ctx, florin, gvr, ns, "after")
		patch(ctx, mailbox, configMaps, ns, "tuning", `{"data": {"entry": "again"}}`)
		eventuallyHas(ctx, florin, configMaps, ns, "tuning", "again", "data", "entry")
		Expect(identities(ctx, florin, secrets, ns, "")).To(Equal(before))
		Expect(identities(ctx, mailbox, secrets, ns, "")).To(Equal(above))
		By("being deleted with the last primary that refers to them")
		remove(ctx, mailbox, gvr, ns, "orders")
		eventuallyGone(ctx, florin, secrets, ns, "admin")
		eventuallyGone(ctx, florin, configMaps, ns, "tuning")
		eventuallyGone(ctx, mailbox, secrets, ns, "orders-connection")
		Expect(framework.Exists(ctx, florin, secrets, ns, "shared")).To(BeTrue(), "bills needs it")
		Expect(framework.Exists(ctx, florin, secrets, ns, "orders-connection")).To(BeTrue(), "an original is never touched")
		patch(ctx, mailbox, gvr, ns, "bills", `{"spec": {"users": []}}`)
		eventuallyGone(ctx, florin, secrets, ns, "shared")
		Expect(framework.Exists(ctx, mailbox, secrets, ns, "shared")).To(BeTrue())
		By("staying when the PublishedResource is deleted")
		remove(ctx, target("hosting"), publishedResources, "", "kin")
		eventuallyGone(ctx, target("hosting"), publishedResources, "", "kin")
		remove(ctx, mailbox, configMaps, ns, "tuning")
		Consistently(framework.Exists).WithContext(ctx).WithArguments(florin, configMaps, ns, "late").WithTimeout(3 * time.Second).Should(BeTrue())
		Expect(framework.Exists(ctx, mailbox, secrets, ns, "bills-tls")).To(BeTrue())
	}, NodeTimeout(5*time.Minute))
})
