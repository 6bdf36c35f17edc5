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
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/installation"
	"github.com/synchub-dev/synchub/test/framework/servers"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// commandLimit ends a command that does not end by itself.
const commandLimit = 3 * time.Minute

// placedLabel is the label of the Namespaces in the workload workspace whose objects are placed.
const placedLabel = "ordinary"

// destination is where a person runs commands.
type destination struct {
	name, kubeconfig string
	config           *rest.Config
	// prefix starts the names of its Namespaces: all of them end up on one cluster.
	prefix string
	// isWorkspace is true if the hub brings the objects to the cluster.
	isWorkspace bool
}

// world is a cluster, and a mailbox workspace and a workload workspace whose objects a hub brings to that cluster.
type world struct {
	cluster, mailbox, workload *destination
	bin                        string
	// client is for the cluster.
	client dynamic.Interface
}

func (w *world) all() []*destination { return []*destination{w.cluster, w.mailbox, w.workload} }

// placement selects all objects in labelled Namespaces.
const placement = `
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {name: ordinary}
spec:
  locationSelectors: [{matchLabels: {env: prod}}]
  aggregateStatus: true
  downsync: [{namespaceSelectors: [{matchLabels: {ordinary: placed}}]}]
`

const location = `
apiVersion: edge.kubestellar.io/v2alpha1
kind: Location
metadata: {name: prod, labels: {env: prod}}
spec:
  resource: {group: edge.kubestellar.io, version: v2alpha1, resource: synctargets}
  availableTo: {workspaces: [%q]}
`

// environment starts the servers, the hub, and the two workspaces, once for all tests.
var environment = suite.Shared(func(t testing.TB) *world {
	opts := suite.Options(t)
	kcp := suite.KCP(t)
	hosting := suite.StartTarget(t, "hosting", servers.TargetOptions{})
	cluster := suite.StartTarget(t, "cluster", servers.TargetOptions{Controllers: true})
	ctx := context.WithoutCancel(t.Context())
	g := gomega.NewWithT(t)
	install, err := installation.New(ctx, opts, kcp, hosting, filepath.Join(opts.Bin, "synchub-race"), 1)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	hub, err := install.StartHub()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	suite.Cleanup(func() error {
		code, err := hub.Terminate(context.Background())
		if err == nil && code != 0 {
			err = fmt.Errorf("the hub ended with status %d:\n%s", code, hub.LogTail(30))
		}
		return err
	})
	g.Expect(hub.AwaitReady(ctx)).To(gomega.Succeed())
	inventory, err := install.NewInventory(ctx, "fleet")
	g.Expect(err).NotTo(gomega.HaveOccurred())
	content, err := os.ReadFile(cluster.Kubeconfig)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	suite.Eventually(t, func(g gomega.Gomega) {
		g.Expect(inventory.Register(ctx, "florin", content, map[string]string{"env": "prod"})).To(gomega.Succeed())
	})
	workload, err := install.NewWorkload(ctx, "team")
	g.Expect(err).NotTo(gomega.HaveOccurred())
	suite.Apply(t, inventory.Config, fmt.Sprintf(location, workload.Path))
	suite.Eventually(t, func(g gomega.Gomega) {
		g.Expect(framework.Apply(ctx, workload.Config, placement)).To(gomega.Succeed())
	})
	w := &world{bin: opts.Bin, client: quietClient(t, cluster.Config)}
	w.cluster = &destination{name: "cluster", kubeconfig: cluster.Kubeconfig, config: cluster.Config, prefix: "c-"}
	w.workload = w.workspace(t, kcp, "workload", workload.Path)
	suite.Eventually(t, func(g gomega.Gomega) {
		_, err := inventory.Mailbox(ctx, "florin")
		g.Expect(err).NotTo(gomega.HaveOccurred())
	})
	syncTarget, err := inventory.SyncTarget(ctx, "florin")
	g.Expect(err).NotTo(gomega.HaveOccurred())
	w.mailbox = w.workspace(t, kcp, "mailbox", syncTarget.Status.Mailbox.Workspace)
	return w
})

// quietClient returns a client that prints no warnings.
func quietClient(t testing.TB, config *rest.Config) dynamic.Interface {
	t.Helper()
	config = rest.CopyConfig(config)
	config.WarningHandlerWithContext = rest.NoWarnings{}
	return suite.Dynamic(t, config)
}

func (w *world) workspace(t testing.TB, kcp *servers.KCP, name, path string) *destination {
	t.Helper()
	kubeconfig, err := kcp.WorkspaceKubeconfig(path)
	if err != nil {
		t.Fatal(err)
	}
	return &destination{name: name, kubeconfig: kubeconfig, config: kcp.Workspace(path), prefix: name[:1] + "-", isWorkspace: true}
}

// newNamespace creates a Namespace whose objects the hub brings to the cluster, and returns a shell in it.
func (w *world) newNamespace(t testing.TB, at *destination, name string) *shell {
	t.Helper()
	name = at.prefix + name
	s := &shell{world: w, at: at, namespace: name, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	loaded, err := clientcmd.LoadFromFile(at.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	loaded.Contexts[loaded.CurrentContext].Namespace = name
	if err := clientcmd.WriteToFile(*loaded, s.kubeconfig); err != nil {
		t.Fatal(err)
	}
	suite.Apply(t, at.config, fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: {%s: placed}}}", name, placedLabel))
	if at == w.mailbox {
		suite.Apply(t, at.config, everythingIn(name))
	}
	return s
}

// everythingIn returns a SyncerConfig that selects all objects in a Namespace.
func everythingIn(namespace string) string {
	config := fmt.Sprintf("apiVersion: edge.kubestellar.io/v2alpha1\nkind: SyncerConfig\nmetadata: {name: %[1]s}\nspec:\n  namespaceScope:\n    namespaces: [%[1]s]\n    resources:\n", namespace)
	for _, resource := range resources {
		config += fmt.Sprintf("    - {group: %q, resource: %s}\n", resource.Group, resource.Resource)
	}
	return config
}

// shell runs commands in a Namespace.
type shell struct {
	*world
	at                    *destination
	namespace, kubeconfig string
}

// run runs a command as a person types it, and returns all that it prints. It runs in testdata.
func (s *shell) run(ctx context.Context, command string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	bash := exec.CommandContext(ctx, "bash", "-e", "-u", "-o", "pipefail", "-c", command)
	bash.Dir = "testdata"
	bash.Env = append(os.Environ(),
		"PATH="+s.bin+string(os.PathListSeparator)+os.Getenv("PATH"), "KUBECONFIG="+s.kubeconfig, "KUBECACHEDIR="+filepath.Join(filepath.Dir(s.at.kubeconfig), "cache-"+s.at.name),
		"HELM_CACHE_HOME="+filepath.Dir(s.kubeconfig), "HELM_CONFIG_HOME="+filepath.Dir(s.kubeconfig), "HELM_DATA_HOME="+filepath.Dir(s.kubeconfig),
		"NAMESPACE="+s.namespace)
	// Do not wait for processes that a command leaves in the background.
	bash.WaitDelay = 5 * time.Second
	var output bytes.Buffer
	bash.Stdout, bash.Stderr = &output, &output
	err := bash.Run()
	return output.String(), err
}
