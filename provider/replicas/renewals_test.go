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

package replicas

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A replica counts as live as long as its Lease is renewed, regardless of its clock.
func TestRenewals(t *testing.T) {
	start := time.Unix(1_000_000, 0)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	for name, holder := range map[string]struct {
		// offset is the offset of the owner's clock. The owner renews its Lease at 1, 11, and 21, and ends then.
		offset int
		// seen are the corrected renew times in the lists at 5, 15, 25, 35 and 45.
		seen []int
	}{
		"in time": {0, []int{1, 11, 21, 21, 21}},
		"ahead":   {300, []int{5, 15, 25, 25, 25}},
		"behind":  {-300, []int{-299, 5, 15, 15, 15}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var s renewals
			for number, want := range holder.seen {
				renewed := min(1+10*number, 21)
				leases := []coordinationv1.Lease{
					{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: at(renewed + holder.offset)}}},
					{ObjectMeta: metav1.ObjectMeta{Name: "never renewed"}},
				}
				s.correct(leases, at(5+10*number))
				g.Expect(leases[0].Spec.RenewTime.Time).To(BeTemporally("==", at(want)), "list %d", number)
				g.Expect(leases[1].Spec.RenewTime).To(BeNil())
			}
			s.correct(nil, at(60))
			g.Expect(s.byName).To(BeEmpty(), "deleted Leases are forgotten")
		})
	}
}
