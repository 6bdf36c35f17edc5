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

package agent

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/agent/assignment"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/faults"
	"github.com/synchub-dev/synchub/test/framework/installation"
	"github.com/synchub-dev/synchub/test/framework/servers"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// agents is the agent's namespace in its cluster, and the name of its objects there.
const agents = "synchub-agent"

func TestMain(m *testing.M) { suite.Main(m) }

var (
	configMaps  = corev1.SchemeGroupVersion.WithResource("configmaps")
	leases      = coordinationv1.SchemeGroupVersion.WithResource("leases")
	namespaces  = corev1.SchemeGroupVersion.WithResource("namespaces")
	secrets     = corev1.SchemeGroupVersion.WithResource("secrets")
	deployments = appsv1.SchemeGroupVersion.WithResource("deployments")
	placements  = edgev2alpha1.SchemeGroupVersion.WithResource("edgeplacements")
)

// content is what the mailbox has: a namespace with a Deployment and two ConfigMaps, and what selects them.
const content = `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
data: {entry: first}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: obsolete, namespace: shop}
data: {entry: first}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: registry.invalid/web}]}
---
apiVersion: edge.kubestellar.io/v2alpha1
kind: SyncerConfig
metadata: {name: shop}
spec:
  namespaceScope:
    namespaces: [shop]
    resources:
    - {group: "", resource: configmaps}
    - {group: apps, resource: deployments}
  upsync:
  - {apiGroup: "", resources: [configmaps], namespaces: [shop], names: [from-the-cluster]}
`

func TestAgent(t *testing.T) {
	w := start(t)
	w.expectRegistration(t)
	w.expectSync(t)
	w.expectPlacement(t)
	w.expectLeastRights(t)
	w.expectForgedAssignmentRefused(t)
	w.expectRecovery(t)
	w.expectIntermittentConnection(t)
	w.expectRestartWithoutWrites(t)
	w.expectAnotherClusterIdle(t)
	w.expectRelease(t)
}

// world is a hub with a SyncTarget "edge" whose cluster has an agent.
type world struct {
	*WithT
	opts      servers.Options
	kcp       *servers.KCP
	install   *installation.Installation
	inventory *installation.Inventory
	// hosting is the cluster of the hub, and cluster that of the agent.
	hosting, cluster *servers.Target
	proxy            *faults.Proxy
	process          *servers.Process
	metrics          string
	// mailbox is an administrator's config for the mailbox, and agent the agent's own.
	mailbox, agent *rest.Config
}

func start(t *testing.T) *world {
	t.Helper()
	w := &world{WithT: NewWithT(t)}
	w.opts = suite.Options(t)
	w.hosting = suite.StartTarget(t, "hosting", servers.TargetOptions{})
	w.cluster = suite.StartTarget(t, "edge", servers.TargetOptions{})
	w.kcp = suite.KCP(t)
	var err error
	w.proxy, err = faults.NewProxy(t.Context(), w.kcp.Config)
	w.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = w.proxy.Close() })

	w.install, err = installation.New(t.Context(), w.opts, w.kcp, w.hosting, filepath.Join(w.opts.Bin, "synchub-race"), 1)
	w.Expect(err).NotTo(HaveOccurred())
	hub, err := w.install.StartHub()
	w.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { w.end(t, hub.Process) })
	w.Expect(hub.AwaitReady(t.Context())).To(Succeed())
	w.inventory, err = w.install.NewInventory(t.Context(), "fleet")
	w.Expect(err).NotTo(HaveOccurred())
	w.Eventually(func() error {
		_, err := framework.List(t.Context(), w.inventory.Config, installation.SyncTargets, "", "")
		return err
	}).Should(Succeed(), "the workspace serves SyncTargets")
	return w
}

func (w *world) end(t *testing.T, process *servers.Process) {
	t.Helper()
	code, err := process.Terminate(context.WithoutCancel(t.Context()))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(code).To(BeZero(), process.LogTail(30))
}

// plugin runs kubectl-synchub in the inventory workspace, and returns its standard output.
func (w *world) plugin(t *testing.T, args ...string) string {
	t.Helper()
	kubeconfig, err := w.kcp.WorkspaceKubeconfig(w.inventory.Path)
	w.Expect(err).NotTo(HaveOccurred())
	command := exec.CommandContext(t.Context(), filepath.Join(w.opts.Bin, "kubectl-synchub"), append(args, "--kubeconfig", kubeconfig)...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	w.Expect(command.Run()).To(Succeed(), "%s", stderr.String())
	return stdout.String()
}

// applyManifest applies the printed manifest to the cluster.
func (w *world) applyManifest(t *testing.T) {
	t.Helper()
	proxied, err := w.proxy.Kubeconfig()
	w.Expect(err).NotTo(HaveOccurred())
	throughProxy, err := clientcmd.RESTConfigFromKubeConfig(proxied)
	w.Expect(err).NotTo(HaveOccurred())
	// The proxy has a certificate of its own.
	authority := filepath.Join(w.opts.Dir, "proxy.crt")
	w.Expect(os.WriteFile(authority, throughProxy.CAData, 0o600)).To(Succeed())
	manifest := w.plugin(t, "register", "edge", "--mode=agent", "--output=yaml", "--kcp-server", throughProxy.Host, "--kcp-certificate-authority", authority)
	w.Expect(framework.Apply(t.Context(), w.cluster.Config, manifest)).To(Succeed())
	w.agent, err = w.agentConfig(t)
	w.Expect(err).NotTo(HaveOccurred())
}

// expectRegistration applies the printed manifest to the cluster, and starts the agent with the content of its Secret.
func (w *world) expectRegistration(t *testing.T) {
	t.Helper()
	w.applyManifest(t)
	w.Expect(w.plugin(t, "get", "targets", "edge", "-o", "wide")).To(ContainSubstring("Agent"))

	syncTarget, err := w.inventory.SyncTarget(t.Context(), "edge")
	w.Expect(err).NotTo(HaveOccurred())
	w.mailbox = w.install.InWorkspace(syncTarget.Status.Mailbox.Workspace)
	w.startAgent(t)
	w.Eventually(func(g Gomega) {
		syncTarget, err := w.inventory.SyncTarget(t.Context(), "edge")
		g.Expect(err).NotTo(HaveOccurred())
		ready := meta.FindStatusCondition(syncTarget.Status.Conditions, edgev2alpha1.ConditionReady)
		g.Expect(ready).NotTo(BeNil())
		g.Expect(string(ready.Status)).To(Equal("True"), "%v\n%s", syncTarget.Status.Conditions, w.process.LogTail(20))
		g.Expect(syncTarget.Status.Versions).NotTo(BeNil())
	}).Should(Succeed())
}

// agentConfig returns the agent's own config for the mailbox, which is in its Secret.
func (w *world) agentConfig(t *testing.T) (*rest.Config, error) {
	t.Helper()
	object, err := framework.Get(t.Context(), w.cluster.Config, secrets, agents, agents)
	if err != nil {
		return nil, err
	}
	var secret corev1.Secret
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &secret); err != nil {
		return nil, err
	}
	return clientcmd.RESTConfigFromKubeConfig(secret.Data["kubeconfig"])
}

// startAgent starts the agent as its Deployment would, with the rights of its ServiceAccount.
func (w *world) startAgent(t *testing.T) {
	t.Helper()
	kubeconfig, err := w.cluster.ServiceAccountKubeconfig(t.Context(), agents, agents)
	w.Expect(err).NotTo(HaveOccurred())
	port, err := servers.FreePort()
	w.Expect(err).NotTo(HaveOccurred())
	file := filepath.Join(w.opts.Dir, fmt.Sprintf("agent-%d.kubeconfig", port))
	w.Expect(os.WriteFile(file, kubeconfig, 0o600)).To(Succeed())
	w.metrics = fmt.Sprintf("127.0.0.1:%d", port)
	w.process, err = servers.Start(w.opts, "agent", filepath.Join(w.opts.Bin, "synchub-race"), []string{
		"agent", "--kubeconfig", file, "--namespace", agents, "--metrics-bind-address", w.metrics, "--health-probe-bind-address", "0",
		"--binding-settle-period", "2s", "--mass-deletion-delay", "2s", "--log-level", "debug", "--log-format", "console",
	}, nil)
	w.Expect(err).NotTo(HaveOccurred())
	process := w.process
	t.Cleanup(func() {
		if !process.Ended() {
			w.end(t, process)
		}
	})
}

func (w *world) eventuallyField(t *testing.T, config *rest.Config, name, want string, path ...string) {
	t.Helper()
	w.Eventually(func() (string, error) {
		return framework.Field(t.Context(), config, configMaps, "shop", name, path...)
	}).Should(Equal(want), func() string { return w.process.LogTail(20) })
}

// expectSync changes objects on both sides.
func (w *world) expectSync(t *testing.T) {
	t.Helper()
	w.Eventually(framework.Apply).WithContext(t.Context()).WithArguments(w.mailbox, content).Should(Succeed())
	w.eventuallyField(t, w.cluster.Config, "settings", "first", "data", "entry")
	w.eventuallyField(t, w.cluster.Config, "obsolete", "first", "data", "entry")
	w.Eventually(framework.Exists).WithContext(t.Context()).WithArguments(w.cluster.Config, deployments, "shop", "web").Should(BeTrue())
	w.Expect(framework.Patch(t.Context(), w.cluster.Config, deployments, "shop", "web", `{"status": {"replicas": 1, "readyReplicas": 1}}`, "status")).To(Succeed())
	w.Eventually(func() (string, error) {
		return framework.Field(t.Context(), w.mailbox, deployments, "shop", "web", "status", "readyReplicas")
	}).Should(Equal("1"))
	w.Expect(framework.Patch(t.Context(), w.mailbox, configMaps, "shop", "settings", `{"data": {"entry": "second"}}`)).To(Succeed())
	w.eventuallyField(t, w.cluster.Config, "settings", "second", "data", "entry")
	w.Expect(framework.Apply(t.Context(), w.cluster.Config, "{apiVersion: v1, kind: ConfigMap, metadata: {name: from-the-cluster, namespace: shop}, data: {entry: up}}")).To(Succeed())
	w.eventuallyField(t, w.mailbox, "from-the-cluster", "up", "data", "entry")
	w.Expect(framework.Delete(t.Context(), w.mailbox, configMaps, "shop", "obsolete")).To(Succeed())
	w.Eventually(framework.Exists).WithContext(t.Context()).WithArguments(w.cluster.Config, configMaps, "shop", "obsolete").Should(BeFalse())
	// None of the agent's own objects goes down.
	w.Expect(framework.Exists(t.Context(), w.cluster.Config, configMaps, agents, assignment.ConfigMap)).To(BeFalse())
	w.Eventually(func() (string, error) {
		return framework.Condition(t.Context(), w.mailbox, edgev2alpha1.SchemeGroupVersion.WithResource("syncerconfigs"), "", "shop", "Ready")
	}).Should(Equal("True"))
}

// placed is a namespace with a Deployment, and a placement that takes one cluster after the other: first that of the agent.
const placed = `
apiVersion: v1
kind: Namespace
metadata: {name: tills}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: till, namespace: tills, labels: {edition: "%[1]s"}}
spec:
  selector: {matchLabels: {app: till}}
  template:
    metadata: {labels: {app: till, edition: "%[1]s"}}
    spec: {containers: [{name: till, image: registry.invalid/till}]}
---
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {name: tills}
spec:
  locationSelectors: [{matchLabels: {env: prod}}]
  downsync: [{namespaces: [tills]}]
  rolloutStrategy: {type: Progressive, progressive: {maxConcurrency: 1, progressDeadline: 10m}}
`

// expectPlacement rolls a Deployment out, and then an edit: to the cluster of the agent first, and to another one when it is healthy there.
func (w *world) expectPlacement(t *testing.T) {
	t.Helper()
	workload, err := w.install.NewWorkload(t.Context(), "tills")
	w.Expect(err).NotTo(HaveOccurred())
	kubeconfig, err := os.ReadFile(w.hosting.Kubeconfig)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.inventory.Register(t.Context(), "zloty", kubeconfig, nil)).To(Succeed())
	w.Expect(framework.Apply(t.Context(), w.inventory.Config, fmt.Sprintf(`{apiVersion: edge.kubestellar.io/v2alpha1, kind: Location, metadata: {name: prod, labels: {env: prod}},
		spec: {resource: {group: edge.kubestellar.io, version: v2alpha1, resource: synctargets}, availableTo: {workspaces: [%q]}}}`, workload.Path))).To(Succeed())
	edition := func(cluster *servers.Target) string {
		found, _ := framework.Field(t.Context(), cluster.Config, deployments, "tills", "till", "metadata", "labels", "edition")
		return found
	}
	for _, next := range []string{"first", "second"} {
		before := edition(w.hosting)
		w.Eventually(framework.Apply).WithContext(t.Context()).WithArguments(workload.Config, fmt.Sprintf(placed, next)).Should(Succeed())
		for _, cluster := range []*servers.Target{w.cluster, w.hosting} {
			w.Eventually(edition).WithArguments(cluster).Should(Equal(next), func() string { return w.describePlacement(t, workload) + w.process.LogTail(20) })
			if cluster == w.cluster {
				w.Expect(edition(w.hosting)).To(Equal(before), "the other cluster waits until the object is healthy where it is")
			}
			w.makeAvailable(t, cluster)
		}
		w.Eventually(func(g Gomega) {
			object, err := framework.Get(t.Context(), workload.Config, placements, "", "tills")
			g.Expect(err).NotTo(HaveOccurred())
			var found edgev2alpha1.EdgePlacement
			g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &found)).To(Succeed())
			condition := meta.FindStatusCondition(found.Status.Conditions, edgev2alpha1.ConditionReady)
			g.Expect(condition).NotTo(BeNil())
			g.Expect(condition.Status).To(BeEquivalentTo("True"), "%+v", found.Status)
			g.Expect(found.Status.Synced).To(BeEquivalentTo(2), "%+v", found.Status)
			g.Expect(found.Status.Healthy).To(BeEquivalentTo(2), "%+v", found.Status)
			g.Expect(found.Status.Rollout).NotTo(BeNil())
			g.Expect(found.Status.Rollout.Succeeded).To(BeEquivalentTo(2), "%+v", found.Status)
		}).Should(Succeed())
	}
	w.Expect(framework.Delete(t.Context(), workload.Config, placements, "", "tills")).To(Succeed())
	for _, cluster := range []*servers.Target{w.cluster, w.hosting} {
		w.Eventually(framework.Exists).WithContext(t.Context()).WithArguments(cluster.Config, deployments, "tills", "till").Should(BeFalse())
	}
}

// makeAvailable writes the status that the controller of Deployments would write.
func (w *world) makeAvailable(t *testing.T, cluster *servers.Target) {
	t.Helper()
	w.Eventually(func(g Gomega) {
		till, err := framework.Get(t.Context(), cluster.Config, deployments, "tills", "till")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(framework.Patch(t.Context(), cluster.Config, deployments, "tills", "till", fmt.Sprintf(`{"status": {"observedGeneration": %d, "replicas": 1,
			"updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1, "conditions": [{"type": "Available", "status": "True"},
			{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}]}}`, till.GetGeneration()), "status")).To(Succeed())
	}).Should(Succeed())
}

// describePlacement returns the status of the placement.
func (w *world) describePlacement(t *testing.T, workload *installation.Workload) string {
	t.Helper()
	object, err := framework.Get(t.Context(), workload.Config, placements, "", "tills")
	if err != nil {
		return err.Error()
	}
	status, _ := yaml.Marshal(object.Object["status"])
	return string(status)
}

// expectLeastRights uses the agent's token where it must not be of use.
func (w *world) expectLeastRights(t *testing.T) {
	t.Helper()
	w.plugin(t, "register", "other", "--mode=agent", "--output=yaml")
	other, err := w.inventory.SyncTarget(t.Context(), "other")
	w.Expect(err).NotTo(HaveOccurred())
	for _, workspace := range []string{other.Status.Mailbox.Workspace, other.Status.Mailbox.Cluster, w.inventory.Path, w.install.Workspace, "root"} {
		config := rest.CopyConfig(w.agent)
		config.Host = strings.TrimSuffix(w.agent.Host, w.agent.Host[strings.Index(w.agent.Host, "/clusters/"):]) + "/clusters/" + workspace
		_, err := framework.List(t.Context(), config, secrets, "", "")
		w.Expect(apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)).To(BeTrue(), "%s: %v", workspace, err)
	}
	// In its own mailbox it may read bindings, since they are published, but write none, not even one that gives it what it has.
	for _, role := range []string{"cluster-admin", "synchub:agent"} {
		err = framework.Apply(t.Context(), w.agent, `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: more},
			subjects: [{kind: ServiceAccount, name: synchub-agent, namespace: synchub-agent}], roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "`+role+`"}}`)
		w.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%s: %v", role, err)
	}
}

// expectForgedAssignmentRefused lets a tenant change the assignment. The agent keeps the one that it has, and the hub puts it back.
func (w *world) expectForgedAssignmentRefused(t *testing.T) {
	t.Helper()
	before, err := framework.Get(t.Context(), w.mailbox, configMaps, assignment.Namespace, assignment.ConfigMap)
	w.Expect(err).NotTo(HaveOccurred())
	seal, _, _ := unstructured.NestedString(before.Object, "data", assignment.SealKey)
	w.Expect(framework.Patch(t.Context(), w.mailbox, configMaps, assignment.Namespace, assignment.ConfigMap, `{"data": {"seal": "forged"}}`)).To(Succeed())
	w.Eventually(func() (string, error) {
		return framework.Field(t.Context(), w.mailbox, configMaps, assignment.Namespace, assignment.ConfigMap, "data", assignment.SealKey)
	}).Should(Equal(seal), "the hub puts the assignment back")
	// Meanwhile and afterwards the agent syncs.
	w.Expect(framework.Patch(t.Context(), w.mailbox, configMaps, "shop", "settings", `{"data": {"entry": "third"}}`)).To(Succeed())
	w.eventuallyField(t, w.cluster.Config, "settings", "third", "data", "entry")
}

// objectWrites returns how many writes of objects a server has accepted from the agent, by verb and side.
func (w *world) objectWrites(t *testing.T) map[string]float64 {
	t.Helper()
	samples, err := framework.Scrape(t.Context(), "http://"+w.metrics+"/metrics")
	w.Expect(err).NotTo(HaveOccurred())
	writes := map[string]float64{}
	for request, count := range installation.RequestsIn(samples) {
		if request.Class == "object" && strings.HasPrefix(request.Code, "2") {
			writes[request.String()] += count
		}
	}
	return writes
}

// expectObjectWrites waits until so many writes of objects are counted, and expects no more of them. An object can be seen in a cluster before the
// agent has the answer that it counts.
func (w *world) expectObjectWrites(t *testing.T, expected float64) {
	t.Helper()
	writes := map[string]float64{}
	w.Eventually(func() float64 {
		writes = w.objectWrites(t)
		return sum(writes)
	}).Should(BeNumerically(">=", expected), func() string { return fmt.Sprint(writes) })
	w.Expect(sum(writes)).To(Equal(expected), "%v", writes)
}

func sum(counts map[string]float64) (total float64) {
	for _, count := range counts {
		total += count
	}
	return total
}

// expectRecovery cuts the connection to kcp, changes both sides, and heals it. Each change is written once.
func (w *world) expectRecovery(t *testing.T) {
	t.Helper()
	before := w.objectWrites(t)
	w.Expect(w.proxy.Set(t.Context(), faults.Refused)).To(Succeed())
	w.Expect(framework.Patch(t.Context(), w.mailbox, configMaps, "shop", "settings", `{"data": {"entry": "while away"}}`)).To(Succeed())
	w.Expect(framework.Apply(t.Context(), w.mailbox, "{apiVersion: v1, kind: ConfigMap, metadata: {name: late, namespace: shop}, data: {entry: late}}")).To(Succeed())
	w.Expect(framework.Patch(t.Context(), w.cluster.Config, configMaps, "shop", "from-the-cluster", `{"data": {"entry": "up again"}}`)).To(Succeed())
	w.Expect(framework.Patch(t.Context(), w.cluster.Config, deployments, "shop", "web", `{"status": {"replicas": 1, "readyReplicas": 0}}`, "status")).To(Succeed())
	w.eventuallySilent(t)
	w.Expect(framework.Field(t.Context(), w.cluster.Config, configMaps, "shop", "settings", "data", "entry")).To(Equal("third"), "nothing arrives while the connection is cut")

	w.Expect(w.proxy.Set(t.Context(), faults.None)).To(Succeed())
	w.eventuallyField(t, w.cluster.Config, "settings", "while away", "data", "entry")
	w.eventuallyField(t, w.cluster.Config, "late", "late", "data", "entry")
	w.eventuallyField(t, w.mailbox, "from-the-cluster", "up again", "data", "entry")
	w.Eventually(func() (string, error) {
		return framework.Field(t.Context(), w.mailbox, deployments, "shop", "web", "status", "readyReplicas")
	}).ShouldNot(Equal("1"))
	w.eventuallyReady(t)
	// One for each of the two ConfigMaps down, one for that up, and one for the status.
	w.expectObjectWrites(t, sum(before)+4)
}

// expectIntermittentConnection lets the agent reach kcp for moments only, while both sides are edited. In between kcp is started again: then it no
// longer has the versions from which the agent would go on to watch, as after hours. Each content is written once at most, and the last one arrives.
func (w *world) expectIntermittentConnection(t *testing.T) {
	t.Helper()
	const moments = 10
	arrived, err := suite.Dynamic(t, w.cluster.Config).Resource(configMaps).Namespace("shop").Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=settings"})
	w.Expect(err).NotTo(HaveOccurred())
	defer arrived.Stop()
	before := sum(w.objectWrites(t))
	for moment := range moments {
		entry := fmt.Sprint("moment ", moment)
		content := fmt.Sprintf(`{"data": {"entry": %q}}`, entry)
		w.Expect(w.proxy.Set(t.Context(), faults.Refused)).To(Succeed())
		w.Expect(framework.Patch(t.Context(), w.mailbox, configMaps, "shop", "settings", content)).To(Succeed())
		w.Expect(framework.Patch(t.Context(), w.cluster.Config, configMaps, "shop", "from-the-cluster", content)).To(Succeed())
		if moment == moments/2 {
			w.Expect(w.kcp.Kill9()).To(Succeed())
			w.Expect(w.kcp.Start(t.Context())).To(Succeed())
		}
		w.Expect(w.proxy.Set(t.Context(), faults.None)).To(Succeed())
		if moment%2 == 1 {
			w.eventuallyField(t, w.cluster.Config, "settings", entry, "data", "entry")
			w.eventuallyField(t, w.mailbox, "from-the-cluster", entry, "data", "entry")
		}
	}
	w.eventuallyReady(t)
	w.Expect(sum(w.objectWrites(t)) - before).To(BeNumerically("<=", 2*moments))

	seen := map[string]int{}
	for last := fmt.Sprint("moment ", moments-1); seen[last] == 0; {
		var event watch.Event
		w.Eventually(arrived.ResultChan()).Should(Receive(&event))
		entry, _, _ := unstructured.NestedString(event.Object.(*unstructured.Unstructured).Object, "data", "entry")
		seen[entry]++
	}
	w.Expect(seen).To(HaveEach(1), "each content is written once")
}

// expectRestartWithoutWrites starts the agent again, with everything in sync. The key that it shares with the hub is replaced meanwhile, which
// changes nothing about its objects.
func (w *world) expectRestartWithoutWrites(t *testing.T) {
	t.Helper()
	w.end(t, w.process)
	w.Expect(framework.Patch(t.Context(), w.inventory.Config, secrets, metav1.NamespaceDefault, "edge-agent", `{"data": {"agent-key": null}}`)).To(Succeed())
	w.applyManifest(t)
	w.startAgent(t)
	objects := []string{"settings", "late", "from-the-cluster", "web"}
	w.Eventually(func() (decided float64, err error) {
		samples, err := framework.Scrape(t.Context(), "http://"+w.metrics+"/metrics")
		for sample, count := range samples {
			if strings.HasPrefix(sample, "synchub_sync_actions_total{") {
				decided += count
			}
		}
		return decided, err
	}).Should(BeNumerically(">=", len(objects)), "it has decided about every object")
	// A change goes after all that the start may have queued.
	w.Expect(framework.Patch(t.Context(), w.mailbox, configMaps, "shop", "settings", `{"data": {"entry": "restarted"}}`)).To(Succeed())
	w.eventuallyField(t, w.cluster.Config, "settings", "restarted", "data", "entry")
	w.expectObjectWrites(t, 1)
}

// expectAnotherClusterIdle applies the agent's manifest to another cluster while the agent is away. Nothing is synced there, and the agent goes on
// when it is back, although the other one has reported since.
func (w *world) expectAnotherClusterIdle(t *testing.T) {
	t.Helper()
	w.end(t, w.process)
	// The other agent would wait for two minutes after the last report.
	w.Expect(framework.Patch(t.Context(), w.mailbox, leases, assignment.Namespace, assignment.Lease, `{"metadata": {"annotations": null}}`)).To(Succeed())
	expected := w.cluster
	w.cluster = w.hosting
	w.applyManifest(t)
	w.startAgent(t)
	other := w.process
	w.eventuallyCondition(t, edgev2alpha1.ConditionHeartbeatHealthy, targets.ReasonClusterChanged)
	w.Expect(framework.Exists(t.Context(), w.hosting.Config, namespaces, "", "shop")).To(BeFalse())

	w.cluster = expected
	w.applyManifest(t)
	w.startAgent(t)
	w.eventuallyReady(t)
	w.Eventually(other.Ended).Should(BeTrue(), "it must not disturb the agent of the expected cluster")
	w.Expect(framework.Exists(t.Context(), w.hosting.Config, namespaces, "", "shop")).To(BeFalse())
}

// expectRelease deletes the SyncTarget. By default the agent leaves the objects, without the hub's marks, although it was installed again:
// its ledger and its last report are gone.
func (w *world) expectRelease(t *testing.T) {
	t.Helper()
	w.end(t, w.process)
	records, err := framework.List(t.Context(), w.cluster.Config, configMaps, agents, "")
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(records).NotTo(BeEmpty())
	for _, record := range records {
		w.Expect(framework.Delete(t.Context(), w.cluster.Config, configMaps, agents, record.GetName())).To(Succeed())
	}
	w.Expect(framework.Patch(t.Context(), w.mailbox, leases, assignment.Namespace, assignment.Lease, `{"metadata": {"annotations": null}}`)).To(Succeed())
	w.Expect(framework.Delete(t.Context(), w.inventory.Config, installation.SyncTargets, "", "edge")).To(Succeed())
	w.startAgent(t)
	w.Eventually(framework.Exists).WithContext(t.Context()).WithArguments(w.inventory.Config, installation.SyncTargets, "", "edge").
		Should(BeFalse(), func() string { return w.process.LogTail(20) })
	for _, name := range []string{"settings", "late"} {
		left, err := framework.Get(t.Context(), w.cluster.Config, configMaps, "shop", name)
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(left.GetLabels()).NotTo(HaveKey(ownership.OwnerLabel))
		w.Expect(left.GetAnnotations()).NotTo(HaveKey(ownership.MarkAnnotation))
	}
}

// eventuallySilent waits until the hub says that the agent is silent.
func (w *world) eventuallySilent(t *testing.T) {
	t.Helper()
	w.eventuallyCondition(t, edgev2alpha1.ConditionReady, "AgentSilent")
}

func (w *world) eventuallyReady(t *testing.T) {
	t.Helper()
	w.eventuallyCondition(t, edgev2alpha1.ConditionReady, "Ready")
}

func (w *world) eventuallyCondition(t *testing.T, kind, reason string) {
	t.Helper()
	w.Eventually(func(g Gomega) {
		syncTarget, err := w.inventory.SyncTarget(t.Context(), "edge")
		g.Expect(err).NotTo(HaveOccurred())
		condition := meta.FindStatusCondition(syncTarget.Status.Conditions, kind)
		g.Expect(condition).NotTo(BeNil())
		g.Expect(condition.Reason).To(Equal(reason), "%v", syncTarget.Status.Conditions)
	}).Should(Succeed())
}
