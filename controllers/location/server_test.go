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

package location

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kcp-dev/logicalcluster/v3"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/inventoryenv"
	"github.com/synchub-dev/synchub/test/framework/suite"
	"github.com/synchub-dev/synchub/test/tier"
)

func TestMain(m *testing.M) { suite.Main(m) }

// workspace is an inventory workspace of a test.
type workspace struct {
	client.Client
	*testing.T
	cluster logicalcluster.Name
}

func (w workspace) syncTarget(name string, labels map[string]string, finalizers ...string) {
	w.Helper()
	syncTarget := &edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Finalizers: finalizers}}
	NewWithT(w).Expect(w.Create(w.Context(), syncTarget)).To(Succeed())
}

// location creates a Location that selects the SyncTargets of an environment.
func (w workspace) location(name, env string) {
	w.Helper()
	location := newDefault()
	location.Name = name
	location.Spec.InstanceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"env": env}}
	NewWithT(w).Expect(w.Create(w.Context(), location)).To(Succeed())
}

// change patches an object.
func change[T client.Object](w workspace, name string, object T, change func(T)) {
	w.Helper()
	g := NewWithT(w)
	g.Expect(w.Get(w.Context(), types.NamespacedName{Name: name}, object)).To(Succeed())
	before := object.DeepCopyObject().(T)
	change(object)
	g.Expect(w.Patch(w.Context(), object, client.MergeFrom(before))).To(Succeed())
}

// setReady writes the condition Ready of a SyncTarget, as the hub does.
func (w workspace) setReady(name string) {
	w.Helper()
	g := NewWithT(w)
	var syncTarget edgev2alpha1.SyncTarget
	g.Expect(w.Get(w.Context(), types.NamespacedName{Name: name}, &syncTarget)).To(Succeed())
	before := syncTarget.DeepCopy()
	meta.SetStatusCondition(&syncTarget.Status.Conditions, metav1.Condition{Type: edgev2alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Ready"})
	g.Expect(w.Status().Patch(w.Context(), &syncTarget, client.MergeFrom(before))).To(Succeed())
}

// expect waits until a Location has the counts and the reason, and returns it.
func (w workspace) expect(name string, instances, available int32, reason string) (location edgev2alpha1.Location) {
	w.Helper()
	suite.Eventually(w, func(g Gomega) {
		location = edgev2alpha1.Location{}
		g.Expect(w.Get(w.Context(), types.NamespacedName{Name: name}, &location)).To(Succeed())
		g.Expect(location.Status.Instances).To(HaveValue(Equal(instances)))
		g.Expect(location.Status.AvailableInstances).To(HaveValue(Equal(available)))
		ready := meta.FindStatusCondition(location.Status.Conditions, edgev2alpha1.ConditionReady)
		g.Expect(ready).NotTo(BeNil())
		g.Expect(ready.Reason).To(Equal(reason))
	})
	return location
}

func (w workspace) names() (names []string) {
	w.Helper()
	var all edgev2alpha1.LocationList
	NewWithT(w).Expect(w.List(w.Context(), &all)).To(Succeed())
	for i := range all.Items {
		names = append(names, all.Items[i].Name)
	}
	return names
}

// writes returns how many requests have written a Location or its status.
func writes(t *testing.T) (count float64) {
	t.Helper()
	for _, requests := range framework.Gather(t, requestmetrics.Collectors()...) {
		verb, resource := requests.Labels["verb"], requests.Labels["resource"]
		if strings.HasPrefix(resource, "locations") && (verb == "create" || verb == "patch") {
			count += requests.Value
		}
	}
	return count
}

func TestAgainstKCP(t *testing.T) {
	tier.Thorough(t)
	env := inventoryenv.New(t)
	var manager mcmanager.Manager
	register := func(hub *inventoryenv.Hub) error {
		manager = hub.Manager
		return New(Options{Inventories: hub.Manager, Clock: clock.RealClock{}}).Register(hub.Manager.GetLocalManager())
	}
	stop := env.Start(t, register)
	in := func(t *testing.T, name string) workspace {
		inventory := env.NewInventory(t, name)
		return workspace{inventory.Client, t, inventory.Name}
	}

	t.Run("counts the SyncTargets that a Location selects", func(t *testing.T) {
		w := in(t, "counts")
		w.location("prod", "prod")
		w.location("test", "test")
		w.expect("prod", 0, 0, ReasonReady)
		w.syncTarget("one", map[string]string{"env": "prod"})
		w.syncTarget("two", map[string]string{"env": "prod"})
		w.expect("prod", 2, 0, ReasonReady)
		w.setReady("one")
		w.setReady("two")
		w.expect("prod", 2, 2, ReasonReady)
		change(w, "two", &edgev2alpha1.SyncTarget{}, func(s *edgev2alpha1.SyncTarget) { s.Spec.Unschedulable = true })
		w.expect("prod", 2, 1, ReasonReady)
		// A label moves a SyncTarget to another Location.
		change(w, "one", &edgev2alpha1.SyncTarget{}, func(s *edgev2alpha1.SyncTarget) { s.Labels["env"] = "test" })
		w.expect("prod", 1, 0, ReasonReady)
		w.expect("test", 1, 1, ReasonReady)
		if names := w.names(); len(names) != 2 {
			t.Errorf("the workspace has the Locations %v", names)
		}
	})

	t.Run("creates the default Location", func(t *testing.T) {
		g, w := NewWithT(t), in(t, "default")
		w.syncTarget("one", nil)
		created := w.expect(edgev2alpha1.DefaultLocationName, 1, 0, ReasonReady)
		g.Expect(created.Spec.InstanceSelector).To(BeNil())
		g.Expect(created.Spec.AvailableTo.Workspaces).To(BeEmpty())
		// The controller does not create it again while another Location exists. The other Location's count
		// shows that the hub has observed the deletion.
		w.location("prod", "prod")
		w.expect("prod", 0, 0, ReasonReady)
		g.Expect(w.Delete(t.Context(), &created)).To(Succeed())
		w.syncTarget("two", map[string]string{"env": "prod"})
		prod := w.expect("prod", 1, 0, ReasonReady)
		g.Expect(w.names()).To(ConsistOf("prod"))
		g.Expect(w.Delete(t.Context(), &prod)).To(Succeed())
		w.expect(edgev2alpha1.DefaultLocationName, 2, 0, ReasonReady)
	})

	t.Run("creates none in a workspace that unbinds", func(t *testing.T) {
		g, w := NewWithT(t), in(t, "unbinds")
		w.syncTarget("one", nil, "example.com/keeps-the-binding")
		w.expect(edgev2alpha1.DefaultLocationName, 1, 0, ReasonReady)
		binding := &apisv1alpha2.APIBinding{ObjectMeta: metav1.ObjectMeta{Name: "synchub"}}
		g.Expect(w.Delete(t.Context(), binding)).To(Succeed())
		suite.Eventually(t, func(g Gomega) { g.Expect(w.names()).To(BeEmpty()) })
		// kcp deletes the SyncTargets too. The finalizer lets the controller observe that.
		suite.Eventually(t, func(g Gomega) {
			var syncTarget edgev2alpha1.SyncTarget
			g.Expect(w.Get(t.Context(), types.NamespacedName{Name: "one"}, &syncTarget)).To(Succeed())
			g.Expect(syncTarget.DeletionTimestamp).NotTo(BeNil())
		})
		// kcp may delete either kind first. No Location is created in either case.
		inventory, err := manager.GetCluster(t.Context(), multicluster.ClusterName(w.cluster))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(ensureDefault(t.Context(), inventory, make([]edgev2alpha1.SyncTarget, 1))).To(Succeed())
		g.Expect(w.names()).To(BeEmpty())
		change(w, "one", &edgev2alpha1.SyncTarget{}, func(s *edgev2alpha1.SyncTarget) { s.Finalizers = nil })
		suite.Eventually(t, func(g Gomega) {
			g.Expect(w.Get(t.Context(), types.NamespacedName{Name: "synchub"}, binding)).To(Satisfy(apierrors.IsNotFound))
		})
	})

	t.Run("reports a Location that it cannot use", func(t *testing.T) {
		g, w := NewWithT(t), in(t, "unusable")
		w.location("prod", "prod")
		w.expect("prod", 0, 0, ReasonReady)
		w.syncTarget("one", map[string]string{"env": "prod"})
		w.expect("prod", 1, 0, ReasonReady)
		// The schema refuses other invalid selectors.
		selector := func(key string) func(*edgev2alpha1.Location) {
			return func(l *edgev2alpha1.Location) {
				l.Spec.InstanceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{key: "prod"}}
			}
		}
		change(w, "prod", &edgev2alpha1.Location{}, selector("-"))
		invalid := w.expect("prod", 0, 0, ReasonInvalidSelector)
		suite.Eventually(t, func(g Gomega) {
			var events corev1.EventList
			g.Expect(w.List(t.Context(), &events)).To(Succeed())
			g.Expect(events.Items).To(ContainElement(And(
				HaveField("InvolvedObject.Name", "prod"), HaveField("InvolvedObject.UID", invalid.UID), HaveField("Reason", ReasonInvalidSelector),
				HaveField("Message", ContainSubstring(`Invalid value: "-"`)),
			)))
		})
		change(w, "prod", &edgev2alpha1.Location{}, selector("env"))
		w.expect("prod", 1, 0, ReasonReady)
		change(w, "prod", &edgev2alpha1.Location{}, func(l *edgev2alpha1.Location) {
			for number := range 200 {
				l.Spec.AvailableTo.Workspaces = append(l.Spec.AvailableTo.Workspaces, fmt.Sprint("root:", strings.Repeat("x", 400), number))
			}
		})
		w.expect("prod", 0, 0, ReasonTooLarge)
		change(w, "prod", &edgev2alpha1.Location{}, func(l *edgev2alpha1.Location) { l.Spec.AvailableTo.Workspaces = nil })
		w.expect("prod", 1, 0, ReasonReady)
		g.Expect(w.names()).To(ConsistOf("prod"))
	})

	t.Run("writes nothing at rest and after a restart", func(t *testing.T) {
		g, w := NewWithT(t), in(t, "restart")
		w.location("prod", "prod")
		w.location("test", "test")
		w.expect("test", 0, 0, ReasonReady)
		w.location("marker", "marker")
		w.syncTarget("one", map[string]string{"env": "prod"})
		w.setReady("one")
		before := []edgev2alpha1.Location{w.expect("prod", 1, 1, ReasonReady), w.expect("test", 0, 0, ReasonReady)}
		// The last of the workspace to be written may be the marker.
		w.expect("marker", 0, 0, ReasonReady)
		stop()
		written := writes(t)
		env.Start(t, register)
		// One reconcile writes all Locations of a workspace, so this count is written after the other ones.
		w.syncTarget("marked", map[string]string{"env": "marker"})
		w.expect("marker", 1, 0, ReasonReady)
		g.Expect(writes(t)-written).To(BeEquivalentTo(1), "only the count of the marker changed")
		for _, old := range before {
			var now edgev2alpha1.Location
			g.Expect(w.Get(t.Context(), types.NamespacedName{Name: old.Name}, &now)).To(Succeed())
			g.Expect(now.ResourceVersion).To(Equal(old.ResourceVersion))
		}
		g.Expect(w.names()).To(ConsistOf("prod", "test", "marker"))
	})
}
