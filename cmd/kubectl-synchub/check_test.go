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

package main

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/check"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/test/framework/suite"
	"github.com/synchub-dev/synchub/test/tier"
)

// finding matches a line of check.
func finding(area, result, message string) string {
	return "(?m)^" + area + " +" + result + " +.*" + regexp.QuoteMeta(message)
}

func TestCheck(t *testing.T) {
	tier.Thorough(t)
	b, g := newBindTest(t, "check"), NewWithT(t)
	run := func(more ...string) printed {
		return plugin(t, append([]string{"check", "--provider-workspace", bindProvider}, more...)...)
	}

	got := run()
	g.Expect(got.err).NotTo(HaveOccurred(), got.out)
	g.Expect(got.out).To(And(
		MatchRegexp(finding("kcp", "ok", "answers, version ")),
		MatchRegexp(finding("provider", "skipped", "only an administrator of the provider workspace "+bindProvider)),
		MatchRegexp(finding("bindings", "warning", "`kubectl synchub bind inventory` makes it an inventory workspace")),
		MatchRegexp(finding("hub", "skipped", "--hosting-kubeconfig"))))

	succeed(t, "bind", "inventory", "--provider-workspace", bindProvider)
	g.Expect(run().out).To(And(
		MatchRegexp(finding("bindings", "ok", "edge.kubestellar.io is bound, and all its claims are accepted")),
		MatchRegexp(finding("targets", "warning", "no cluster is registered"))))

	g.Expect(b.workspace.Create(t.Context(), &edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{Name: "florin"}})).To(Succeed())
	dump := filepath.Join(t.TempDir(), "dump")
	g.Expect(run("--dump", dump).errs).To(ContainSubstring("The files for a bug report are in " + dump))
	g.Expect(string(suite.ReadFile(t, filepath.Join(dump, "workspace-SyncTargetList.yaml")))).To(ContainSubstring("name: florin"))
	g.Expect(string(suite.ReadFile(t, filepath.Join(dump, "check.yaml")))).To(ContainSubstring("no hub has written"))
	g.Expect(run("--dump", dump).errs).To(ContainSubstring("file exists"))
	useConfig(t, b.kcp.Workspace(b.path))
	got = run("--hub-user", "another")
	g.Expect(got.out).To(And(
		MatchRegexp(finding("provider", "ok", "the user another has the hub's rights")),
		MatchRegexp(finding("targets", "PROBLEM", "no hub has written to any SyncTarget (1)"))))
	g.Expect(got.errs).To(Equal("error: 1 problem found\n"))
	var report check.Report
	g.Expect(json.Unmarshal([]byte(run("--hub-user", "another", "-o", "json").out), &report)).To(Succeed())
	g.Expect(report.Problems()).To(Equal(1))
	g.Expect(run("--hub-user", "nobody").out).To(MatchRegexp(finding("provider", "PROBLEM", "differs from what this version needs, in ClusterRoleBinding synchub:hub")))
	// A user who may enter the workspace, and no more.
	suite.Apply(t, b.kcp.Workspace(b.path), `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: visitor}
rules: [{nonResourceURLs: [/], verbs: [access]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: visitor}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: visitor}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: visitor}]
`)
	suite.Eventually(t, func(g Gomega) {
		got := run("--as", "visitor")
		g.Expect(got.out).To(MatchRegexp(finding("targets", "skipped", "the SyncTargets of the workspace cannot be listed: ")), got.errs)
		g.Expect(got.out).To(ContainSubstring(`User "visitor" cannot list resource "synctargets"`))
	})

	g.Expect(plugin(t, "check", "--provider-workspace", "root:check:nowhere").out).To(MatchRegexp(finding("provider", "PROBLEM", "root:check:nowhere lacks Workspace root:check:nowhere")))
}

func TestCheckOfTheHostingCluster(t *testing.T) {
	tier.Thorough(t)
	const namespace = "check-hub"
	hosting, g := startHosting(t), NewWithT(t)
	admin, err := client.New(hosting.Config, client.Options{Scheme: cli.Scheme})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
	// The current context leads to no kcp.
	g.Expect(plugin(t, "check", "--hosting-kubeconfig", hosting.Kubeconfig).errs).To(ContainSubstring("no workspace of kcp"))

	kcp := newBindTest(t, "check-hosting")
	useConfig(t, kcp.kcp.Workspace(kcp.path))
	run := func() string {
		return plugin(t, "check", "--provider-workspace", bindProvider, "--hosting-kubeconfig", hosting.Kubeconfig, "--hub-namespace", namespace).out
	}
	g.Expect(run()).To(And(
		MatchRegexp(finding("hub", "warning", "has no Deployment of the chart")),
		MatchRegexp(finding("hub", "PROBLEM", "no hub has ever led in the namespace "+namespace))))

	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "synchub"}}
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = new("hub-1"), new(int32(600)), &metav1.MicroTime{Time: time.Now()}
	g.Expect(admin.Create(t.Context(), lease)).To(Succeed())
	labels := map[string]string{"app.kubernetes.io/name": "synchub", "app.kubernetes.io/version": "9.9.9"}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "synchub", Labels: labels}}
	deployment.Spec.Replicas, deployment.Spec.Selector = new(int32(2)), &metav1.LabelSelector{MatchLabels: labels}
	deployment.Spec.Template.Labels, deployment.Spec.Template.Spec.Containers = labels, []corev1.Container{{Name: "synchub", Image: "synchub"}}
	g.Expect(admin.Create(t.Context(), deployment)).To(Succeed())
	g.Expect(run()).To(And(
		MatchRegexp(finding("hub", "PROBLEM", "0 of 2 replicas of the Deployment synchub are ready")),
		MatchRegexp(finding("hub", "ok", "hub-1 leads"))))

	deployment.Status.Replicas, deployment.Status.ReadyReplicas = 2, 2
	g.Expect(admin.Status().Update(t.Context(), deployment)).To(Succeed())
	lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now().Add(-time.Hour)}
	g.Expect(admin.Update(t.Context(), lease)).To(Succeed())
	got := run()
	g.Expect(got).To(And(
		MatchRegexp(finding("hub", "ok", "2 ready replicas of the Deployment synchub, version 9.9.9")),
		MatchRegexp(finding("hub", "PROBLEM", "no hub leads: the Lease check-hub/synchub was renewed 1h"))))
	if !strings.Contains(got, "\napis ") {
		t.Errorf("nothing is said of the published APIs:\n%s", got)
	}
}
