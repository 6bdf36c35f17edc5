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

package scale

import (
	"context"
	"fmt"
	"slices"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/fleet"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

// churn starts, disconnects, reconnects and removes one target, and asserts that the other targets are not affected.
func (r *run) churn(ctx context.Context) {
	others := slices.Clone(r.Fleet.Members)
	before := r.observe(ctx).counts
	var one *fleet.Member
	steps := []struct {
		what string
		do   func()
	}{
		{"starting a target", func() { one = r.start(ctx) }},
		{"losing a target", func() { r.disconnect(ctx, one) }},
		{"having a target again", func() { r.reconnect(ctx, one) }},
		{"removing a target", func() { r.remove(ctx, one) }},
	}
	for _, step := range steps {
		step.do()
		r.waitIdle(ctx)
		// Each comparison is with the counts at the beginning, so late requests are counted too.
		r.Expect(activity(before, countsOf(others))).To(gomega.BeEmpty(), "%s must make no request to another, nor connect to it again", step.what)
		r.Progress("%s did not affect any other target", step.what)
	}
	r.measurements.Isolated = true
}

func (r *run) start(ctx context.Context) *fleet.Member {
	made, err := r.Fleet.Grow(ctx, 1)
	r.Expect(err).NotTo(gomega.HaveOccurred())
	one := made[0]
	r.Expect(r.registerOne(ctx, one)).To(gomega.Succeed())
	r.waitReadiness(ctx, one, metav1.ConditionTrue)
	all, err := r.syncTargets(ctx)
	r.Expect(err).NotTo(gomega.HaveOccurred())
	r.Expect(r.fill(ctx, all[one.Name])).To(gomega.Succeed())
	r.waitObjects(ctx, one, r.Objects)
	return one
}

func (r *run) waitReadiness(ctx context.Context, one *fleet.Member, readiness metav1.ConditionStatus) {
	r.Eventually(r.readiness).WithContext(ctx).WithArguments(one.Name).Should(gomega.Equal(readiness), "readiness of %s", one.Name)
}

func (r *run) disconnect(ctx context.Context, one *fleet.Member) {
	r.Expect(one.Close()).To(gomega.Succeed())
	r.waitReadiness(ctx, one, metav1.ConditionFalse)
	r.Expect(one.Connections()).To(gomega.BeZero())
}

// reconnect opens the proxy again, after a change in the mailbox.
func (r *run) reconnect(ctx context.Context, one *fleet.Member) {
	all, err := r.syncTargets(ctx)
	r.Expect(err).NotTo(gomega.HaveOccurred())
	mailbox := r.Installation.InWorkspace(all[one.Name].Status.Mailbox.Workspace)
	r.Expect(framework.Apply(ctx, mailbox, configMap(fmt.Sprintf("object-%d", r.Objects)))).To(gomega.Succeed())
	r.Expect(one.Open(ctx)).To(gomega.Succeed())
	r.waitReadiness(ctx, one, metav1.ConditionTrue)
	r.waitObjects(ctx, one, r.Objects+1)
}

func (r *run) remove(ctx context.Context, one *fleet.Member) {
	r.Expect(framework.Delete(ctx, r.Inventory.Config, installation.SyncTargets, "", one.Name)).To(gomega.Succeed())
	r.waitReadiness(ctx, one, "")
	r.Eventually(one.Connections).WithContext(ctx).Should(gomega.BeZero(), "connections to %s, which is gone", one.Name)
}
