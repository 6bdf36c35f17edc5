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

package ordinary

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// row is a command that people type. It runs directly on the cluster, in the mailbox and in the workload workspace.
type row struct {
	name string
	// setup makes the objects that the command changes; without it `kubectl create -f web.yaml` does.
	setup string
	// command is for bash, in the directory testdata. NAMESPACE is the current Namespace.
	command string
	// prints is a regular expression of the output, wherever the command succeeds.
	prints string
	// refusal is a regular expression of the message with which a workspace may refuse the command. Without it the workspace must do what
	// the cluster does. An object that the workspace refuses to change stays as it is.
	refusal string
	// mailboxOnly leaves out the workload workspace.
	mailboxOnly bool
	// withChildren compares the ReplicaSets and Pods of the Deployments too.
	withChildren bool
}

// Reasons why a workspace refuses a command.
const (
	// losesItems: the command sends a strategic merge patch, which would take items out of lists.
	losesItems = `nothing was changed, because`
	// inTheEditor: kubectl shows the message in the editor.
	inTheEditor = losesItems + `|is invalid`
	// notServed: the workspace does not serve the API that the command needs.
	notServed = `could not find the requested resource|doesn't have a resource type|no matches for kind`
)

const nothing = "true"

func TestVerbs(t *testing.T) {
	w := environment(t)
	for _, one := range slices.Concat(verbs, charts) {
		t.Run(one.name, func(t *testing.T) {
			t.Parallel()
			w.compare(t, one)
		})
	}
}

// compare runs a row everywhere, and compares the objects on the cluster.
func (w *world) compare(t *testing.T, one row) {
	t.Helper()
	name := regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(one.name), "-")
	direct := w.runAt(t, w.cluster, name, one, nil)
	for _, at := range []*destination{w.mailbox, w.workload} {
		if at == w.workload && one.mailboxOnly {
			continue
		}
		w.runAt(t, at, name, one, direct)
	}
}

// outcome is what a row has done on the cluster.
type outcome struct {
	before, after state
	err           error
}

// afterRefusal returns the objects on the cluster after a command that the workspace has refused for some objects. These are unchanged, in
// the workspace too; all other objects are as on a cluster.
func (o *outcome) afterRefusal(before, after state) state {
	want := maps.Clone(o.before)
	maps.DeleteFunc(want, func(key, _ string) bool { _, ok := after[key]; return !ok })
	for key, content := range after {
		if content != before[key] {
			want[key] = o.after[key]
		}
	}
	return want
}

// runAt runs a row at a destination. The objects on the cluster must become the expected ones, unless expected is nil.
func (w *world) runAt(t *testing.T, at *destination, name string, one row, expected *outcome) *outcome {
	t.Helper()
	g := gomega.NewWithT(t)
	s := w.newNamespace(t, at, name)
	onCluster := func() state {
		found, err := stateOf(t.Context(), w.client, s.namespace, one.withChildren)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		return found
	}
	become := func(want state, after string) {
		t.Helper()
		g.Eventually(onCluster).WithContext(t.Context()).Should(gomega.Equal(want), "%s: the objects on the cluster after: %s", at.name, after)
	}
	setup := one.setup
	if setup == "" {
		setup = "kubectl create -f web.yaml"
	}
	output, err := s.run(t.Context(), setup)
	g.Expect(err).NotTo(gomega.HaveOccurred(), "%s: %s: %s", at.name, setup, output)
	if expected != nil {
		become(expected.before, setup)
	}
	result := &outcome{before: onCluster()}
	if one.withChildren && expected == nil {
		// The controllers of the cluster are not ready with the setup at once.
		suite.Eventually(t, func(g gomega.Gomega) {
			result.before = onCluster()
			g.Expect(maps.Keys(result.before)).To(gomega.ContainElement(gomega.HavePrefix("Pod ")))
		})
	}
	inWorkspace := s.own(t)
	output, result.err = s.run(t.Context(), one.command)
	t.Logf("%s: %v\n%s", at.name, result.err, output)
	switch {
	case result.err == nil:
		g.Expect(output).To(gomega.MatchRegexp(one.prints), at.name)
	case expected == nil || expected.err != nil:
	default:
		g.Expect(one.refusal).NotTo(gomega.BeEmpty(), "%s: the cluster accepts %s: %s", at.name, one.command, output)
		g.Expect(output).To(gomega.MatchRegexp(one.refusal), "%s: a refusal has a reason", at.name)
		become(expected.afterRefusal(inWorkspace, s.own(t)), "a refusal of "+one.command)
		return result
	}
	if expected == nil {
		result.after = onCluster()
		return result
	}
	g.Expect(result.err == nil).To(gomega.Equal(expected.err == nil), "%s: the cluster refuses %s: %v", at.name, one.command, expected.err)
	become(expected.after, one.command)
	return result
}

// kstatusOf returns the state of an object in the workspace as Helm 4 and Flux compute it.
func (s *shell) kstatusOf(t *testing.T, resource, name string) kstatus.Status {
	t.Helper()
	index := slices.IndexFunc(resources, func(one schema.GroupVersionResource) bool { return one.Resource == resource })
	object, err := framework.Get(t.Context(), s.at.config, resources[index], s.namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	result, err := kstatus.Compute(object)
	if err != nil {
		t.Fatal(err)
	}
	return result.Status
}

// own returns the objects of the Namespace where the commands run.
func (s *shell) own(t *testing.T) state {
	t.Helper()
	found, err := stateOf(t.Context(), quietClient(t, s.at.config), s.namespace, false)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// kubectl waits up to a minute for a Pod of the workload, which a workspace never has. It must print at once where the Pods are.
func TestPodsAreElsewhere(t *testing.T) {
	w := environment(t)
	for _, at := range []*destination{w.mailbox, w.workload} {
		s := w.newNamespace(t, at, "pods")
		output, err := s.run(t.Context(), "kubectl create -f web.yaml")
		gomega.NewWithT(t).Expect(err).NotTo(gomega.HaveOccurred(), output)
		for _, command := range []string{"logs deployment/web", "exec deployment/web -- ls", "attach deployment/web", "port-forward deployment/web 8080", "logs service/web"} {
			t.Run(at.name+" "+command, func(t *testing.T) {
				t.Parallel()
				output, err := s.run(t.Context(), "kubectl "+strings.Replace(command, " ", " --pod-running-timeout=2s ", 1))
				gomega.NewWithT(t).Expect(err).To(gomega.HaveOccurred())
				gomega.NewWithT(t).Expect(output).To(gomega.ContainSubstring("Warning: the Pods of workloads are on the clusters"))
			})
		}
	}
}

// Helm 3 waits for the ReplicaSet of a Deployment, which a workspace does not serve. All objects arrive nevertheless, and users can wait
// for their state, as documented in docs/clients.md.
func TestHelmWaitsForAReplicaSet(t *testing.T) {
	w := environment(t)
	for _, at := range []*destination{w.mailbox, w.workload} {
		t.Run(at.name, func(t *testing.T) {
			t.Parallel()
			g := gomega.NewWithT(t)
			s := w.newNamespace(t, at, "helm-wait")
			output, err := s.run(t.Context(), "helm install shop shop --wait --timeout 30s")
			t.Log(output)
			g.Expect(err).To(gomega.HaveOccurred())
			output, err = s.run(t.Context(), "kubectl rollout status deployment/shop --timeout=2m && kubectl wait deployment/shop --for=condition=Available --timeout=2m")
			g.Expect(err).NotTo(gomega.HaveOccurred(), output)
			g.Eventually(func() (state, error) { return stateOf(t.Context(), w.client, s.namespace, false) }).WithContext(t.Context()).Should(gomega.HaveKey("Deployment shop"))
			for _, name := range []string{"deployments", "services", "configmaps"} {
				g.Expect(s.kstatusOf(t, name, "shop")).To(gomega.Equal(kstatus.CurrentStatus), "Helm 4 waits for the status of %s", name)
			}
		})
	}
}
