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

package leadership

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/provider/fence"
)

// The leader owns every SyncTarget from its election on, and its fence decides about writes for each of them.
func TestOfLeader(t *testing.T) {
	g := NewWithT(t)
	elected := make(chan struct{})
	leader := fence.New(clock.RealClock{})
	role := OfLeader(elected, leader)
	g.Expect(role.Owns("a")).To(BeFalse())
	g.Expect(role.Leads()).To(BeFalse())
	close(elected)
	g.Expect(role.Owns("a")).To(BeTrue())
	g.Expect(role.Leads()).To(BeTrue())
	g.Expect(role.Fence("a")).To(BeIdenticalTo(leader))
	g.Expect(OfLeader(nil, nil).Owns("a")).To(BeTrue(), "there is no other replica")
}
