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
	"encoding/json"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/test/framework"
)

var (
	apiBindings = schema.GroupVersionResource{Group: "apis.kcp.io", Version: "v1alpha2", Resource: "apibindings"}
	events      = schema.GroupVersionResource{Version: "v1", Resource: "events"}
)

var _ = Describe("safety", func() {
	It("deletes nothing when a claim is rejected and restored", thorough, Label("requests"), SpecPriority(1), func(ctx SpecContext) {
		const ns, count, flips = "claims", 30, 5
		inventory := newInventory(ctx, ns)
		mailbox := register(ctx, inventory, "florin", "florin")
		apply(ctx, mailbox, documents(namespace(ns), everythingIn(ns)))
		fill(ctx, mailbox, ns, "item-", count)
		Eventually(func() int { return len(identities(ctx, target("florin"), configMaps, ns, "item-")) }).WithContext(ctx).Should(Equal(count))
		before := identities(ctx, target("florin"), configMaps, ns, "item-")

		for range flips {
			answer(ctx, mailbox, "Rejected")
			// kcp hides the objects from the hub, unless it has already accepted the claim again.
			Eventually(claimHasEffect).WithContext(ctx).WithArguments(mailbox, "configmaps", "Rejected").Should(BeTrue())
			answer(ctx, mailbox, "Accepted")
			Eventually(claimHasEffect).WithContext(ctx).WithArguments(mailbox, "configmaps", "Accepted").Should(BeTrue())
		}
		By("not changing copies, for longer than any absence verification takes")
		Consistently(func() map[string]string { return identities(ctx, target("florin"), configMaps, ns, "item-") }).
			WithContext(ctx).WithTimeout(absenceVerified).WithPolling(time.Second).Should(Equal(before))
		By("following a real deletion and a change again")
		remove(ctx, mailbox, configMaps, ns, "item-0")
		patch(ctx, mailbox, configMaps, ns, "item-1", `{"data": {"number": "one"}}`)
		eventuallyGone(ctx, target("florin"), configMaps, ns, "item-0")
		Eventually(value).WithContext(ctx).WithArguments(target("florin"), configMaps, ns, "item-1", "data", "number").Should(Equal("one"))
	}, NodeTimeout(4*time.Minute))

	It("backs off from a conflict with another writer, and names it", func(ctx SpecContext) {
		const ns = "contended"
		mailbox := sharedMailbox(ctx, "florin")
		apply(ctx, mailbox, documents(namespace(ns), configMap(ns, "settings", "ours"), everythingIn(ns)))
		entry := func() string { return value(ctx, target("florin"), configMaps, ns, "settings", "data", "entry") }
		Eventually(entry).WithContext(ctx).Should(Equal("ours"))
		for range 2 {
			patch(ctx, target("florin"), configMaps, ns, "settings", `{"data": {"entry": "theirs"}}`)
			Eventually(entry).WithContext(ctx).Should(Equal("ours"), "the first times it is repaired at once")
		}
		patch(ctx, target("florin"), configMaps, ns, "settings", `{"data": {"entry": "theirs"}}`)
		Eventually(failures).WithContext(ctx).WithArguments(mailbox, ns).Should(ConsistOf("Contended settings"))
		Expect(value(ctx, mailbox, syncerConfigs, "", ns, "status", "failures")).To(And(ContainSubstring("e2e"), ContainSubstring(".data")))
		Expect(entry()).To(Equal("theirs"))
		Eventually(entry).WithContext(ctx).Should(Equal("ours"), "it is repaired all the same, later")
		Eventually(failures).WithContext(ctx).WithArguments(mailbox, ns).Should(BeEmpty())
	}, NodeTimeout(4*time.Minute))
})

// answer makes a mailbox's binding accept or reject the claim on ConfigMaps.
func answer(ctx context.Context, mailbox *rest.Config, state string) {
	GinkgoHelper()
	binding := bindingOf(ctx, mailbox)
	claims, _, _ := unstructured.NestedSlice(binding.Object, "spec", "permissionClaims")
	for _, claim := range claims {
		if isOn(claim, "configmaps") {
			claim.(map[string]any)["state"] = state
		}
	}
	content, err := json.Marshal(map[string]any{"spec": map[string]any{"permissionClaims": claims}})
	Expect(err).NotTo(HaveOccurred())
	patch(ctx, mailbox, apiBindings, "", binding.GetName(), string(content))
}

// claimHasEffect reports whether the state of a claim has taken effect, or kcp has already accepted the claim again, as it does
// for the bindings of the workspace type.
func claimHasEffect(ctx context.Context, mailbox *rest.Config, resource, state string) bool {
	binding := bindingOf(ctx, mailbox)
	applied, _, _ := unstructured.NestedSlice(binding.Object, "status", "appliedPermissionClaims")
	isApplied := slices.ContainsFunc(applied, func(claim any) bool { return isOn(claim, resource) })
	claims, _, _ := unstructured.NestedSlice(binding.Object, "spec", "permissionClaims")
	for _, claim := range claims {
		if isOn(claim, resource) && claim.(map[string]any)["state"] != state {
			return true
		}
	}
	return isApplied == (state == "Accepted")
}

func isOn(claim any, resource string) bool {
	fields := claim.(map[string]any)
	group, _ := fields["group"].(string)
	return fields["resource"] == resource && group == ""
}

func bindingOf(ctx context.Context, mailbox *rest.Config) unstructured.Unstructured {
	GinkgoHelper()
	bindings, err := framework.List(ctx, mailbox, apiBindings, "", "")
	Expect(err).NotTo(HaveOccurred())
	for _, binding := range bindings {
		if name, _, _ := unstructured.NestedString(binding.Object, "spec", "reference", "export", "name"); name == synchubv1alpha1.MailboxExport {
			return binding
		}
	}
	Fail("the mailbox has no binding of " + synchubv1alpha1.MailboxExport)
	return unstructured.Unstructured{}
}

// failures returns the failures in the status of a config, as reason and name.
func failures(ctx context.Context, mailbox *rest.Config, config string) []string {
	object, err := framework.Get(ctx, mailbox, syncerConfigs, "", config)
	if err != nil {
		return []string{err.Error()}
	}
	list, _, _ := unstructured.NestedSlice(object.Object, "status", "failures")
	found := []string{}
	for _, failure := range list {
		fields := failure.(map[string]any)
		found = append(found, fmt.Sprintf("%v %v", fields["reason"], fields["name"]))
	}
	return found
}

// reasons returns the reasons of the events on an object.
func reasons(ctx context.Context, config *rest.Config, namespace, name string) []string {
	objects, err := framework.List(ctx, config, events, namespace, "")
	if err != nil {
		return []string{err.Error()}
	}
	found := []string{}
	for i := range objects {
		if involved, _, _ := unstructured.NestedString(objects[i].Object, "involvedObject", "name"); involved == name {
			reason, _, _ := unstructured.NestedString(objects[i].Object, "reason")
			found = append(found, reason)
		}
	}
	return found
}

// message returns the message of a condition.
func message(ctx context.Context, config *rest.Config, resource schema.GroupVersionResource, name, conditionType string) string {
	object, err := framework.Get(ctx, config, resource, "", name)
	if err != nil {
		return err.Error()
	}
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, condition := range conditions {
		if fields := condition.(map[string]any); fields["type"] == conditionType {
			return fmt.Sprint(fields["message"])
		}
	}
	return ""
}
