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

package controllers

import (
	"context"
	"errors"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// recorder stands in for a controller. It records the clusters that it is engaged with.
type recorder struct {
	engaged []string
	started bool
	err     error
}

func (r *recorder) Engage(_ context.Context, name multicluster.ClusterName, _ cluster.Cluster) error {
	r.engaged = append(r.engaged, name.String())
	return r.err
}

func (r *recorder) Start(context.Context) error { r.started = true; return nil }

func TestEngagedAtStart(t *testing.T) {
	g := NewWithT(t)
	inner := &recorder{}
	runnable := &engagedAtStart{Runnable: inner, waiting: map[multicluster.ClusterName]engagement{}}
	gone, end := context.WithCancel(t.Context())
	former, endFormer := context.WithCancel(t.Context())
	g.Expect(runnable.Engage(t.Context(), "stays", nil)).To(Succeed())
	g.Expect(runnable.Engage(gone, "goes", nil)).To(Succeed())
	g.Expect(runnable.Engage(former, "comes-back", nil)).To(Succeed())
	g.Expect(runnable.Engage(t.Context(), "comes-back", nil)).To(Succeed())
	end()
	endFormer()
	count := func() int {
		runnable.lock.Lock()
		defer runnable.lock.Unlock()
		return len(runnable.waiting)
	}
	g.Eventually(count).Should(Equal(2), "a cluster that is gone is not kept")
	g.Expect(inner.engaged).To(BeEmpty())

	g.Expect(runnable.Start(t.Context())).To(Succeed())
	slices.Sort(inner.engaged)
	g.Expect(inner.engaged).To(Equal([]string{"comes-back", "stays"}))
	g.Expect(inner.started).To(BeTrue())
	g.Expect(runnable.Engage(t.Context(), "later", nil)).To(Succeed())
	g.Expect(inner.engaged).To(ContainElement("later"))
}

func TestEngagedAtStartFails(t *testing.T) {
	g := NewWithT(t)
	inner := &recorder{err: errors.New("no")}
	runnable := &engagedAtStart{Runnable: inner, waiting: map[multicluster.ClusterName]engagement{}}
	g.Expect(runnable.Engage(t.Context(), "one", nil)).To(Succeed())
	g.Expect(runnable.Start(t.Context())).To(MatchError("no"))
	g.Expect(inner.started).To(BeFalse())
}
