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

package drain

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/plan/cleanup"
	"github.com/synchub-dev/synchub/controllers/plan/waves"
)

// The report names terminating objects only while they delay their wave: the other waves wait up to a minute for them.
func TestReportNamesPendingDeletions(t *testing.T) {
	g := NewWithT(t)
	of := func(resource string, action cleanup.Action) item {
		object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "held"}}
		return item{Object: cleanup.Object{Resource: schema.GroupResource{Resource: resource}, PartialObjectMetadata: object}, Decision: cleanup.Decision{Action: action}}
	}
	report := newReport(cleanup.ModeDelete, nil)
	report.recordAll(listing{items: []item{of("configmaps", cleanup.ActionDelete), of("namespaces", cleanup.ActionWait)}})
	resources := func() (all []string) {
		for _, left := range report.status().Left {
			all = append(all, left.Resource+" "+left.Reason)
		}
		return all
	}
	g.Expect(resources()).To(ConsistOf("namespaces Terminating"))
	report.recordWave(waves.Config, listing{items: []item{of("configmaps", cleanup.ActionWait)}})
	g.Expect(resources()).To(ConsistOf("namespaces Terminating", "configmaps Terminating"))
	report.recordWave(waves.Config, listing{})
	g.Expect(resources()).To(ConsistOf("namespaces Terminating"))
}
