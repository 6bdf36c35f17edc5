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

package departure

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/sync/order"
)

// What holds up a wave is named while it does, and no longer: the other waves come after a minute only.
func TestReportNamesWhatHoldsUpAWave(t *testing.T) {
	g := NewWithT(t)
	of := func(resource string, action Action) item {
		object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "held"}}
		return item{Object: Object{Resource: schema.GroupResource{Resource: resource}, PartialObjectMetadata: object}, Decision: Decision{Action: action}}
	}
	report := newReport(Delete, nil)
	report.take(survey{items: []item{of("configmaps", Remove), of("namespaces", Await)}})
	resources := func() (all []string) {
		for _, left := range report.status().Left {
			all = append(all, left.Resource+" "+left.Reason)
		}
		return all
	}
	g.Expect(resources()).To(ConsistOf("namespaces Terminating"))
	report.update(order.Config, survey{items: []item{of("configmaps", Await)}})
	g.Expect(resources()).To(ConsistOf("namespaces Terminating", "configmaps Terminating"))
	report.update(order.Config, survey{})
	g.Expect(resources()).To(ConsistOf("namespaces Terminating"))
}
