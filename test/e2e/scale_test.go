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

	"github.com/synchub-dev/synchub/test/framework/fleet"
	"github.com/synchub-dev/synchub/test/scale"
)

// `make test-scale` does the same with hundreds of targets, and measures. Here the targets are workspaces of the suite's
// kcp: that makes no difference to the hub, and starting another kcp takes long. They are few, since each new mailbox delays
// the mailboxes of all other specs.
var _ = Describe("a fleet", thorough, Label("requests"), func() {
	It("is registered and synced, and an event at one target affects no other target", SpecPriority(2), func(ctx SpecContext) {
		const name, targets = "fleet", 8
		inventory := newInventory(ctx, name)
		members, err := fleet.New(ctx, suite.KCP, name+"-targets", scale.IdleRequests)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(members.Close()).To(Succeed()) })
		scale.Run(ctx, NewGomega(Fail), scale.Config{
			Installation: synchub, Hub: hub, Inventory: inventory, Fleet: members,
			Targets: targets, Objects: 3, Resources: 3, Quiet: 5 * time.Second,
			Progress: func(format string, args ...any) { progress(fmt.Sprintf(format, args...)) },
		}, func(figures scale.Measurements) { Expect(figures.Report(GinkgoWriter, "as built")).To(Succeed()) })
	}, NodeTimeout(8*time.Minute))
})
