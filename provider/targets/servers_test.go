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

package targets

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/dynamic"

	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/servers"
)

const (
	startTimeout = 5 * time.Minute
	// eventuallyTimeout is how long a test waits for what must happen.
	eventuallyTimeout = 3 * time.Minute
)

// The clusters of this package. Tests that stop one use frail.
const (
	steady = "steady"
	frail  = "frail"
)

// definitions are the kinds that the clusters have beside their own.
const definitions = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.org}
spec:
  group: example.org
  scope: Cluster
  names: {plural: gadgets, singular: gadget, kind: Gadget, listKind: GadgetList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
---
apiVersion: example.org/v1
kind: Widget
metadata: {name: served, namespace: default}
---
apiVersion: example.org/v1
kind: Gadget
metadata: {name: served}
`

// shared are the servers of this package, each started by the first test that needs it.
var shared struct {
	sync.Mutex
	options servers.Options
	etcd    *servers.Etcd
	targets map[string]*servers.Target
}

// deadProxy is where the environment of these tests sends all that follows it.
var deadProxy string

func TestMain(m *testing.M) {
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	result := m.Run()
	if err := cleanUp(result == 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		result = 1
	}
	os.Exit(result)
}

func prepare() error {
	// net/http reads the environment at its first request, so this cannot wait for the test that is about it.
	port, err := servers.FreePort()
	if err != nil {
		return err
	}
	deadProxy = "http://127.0.0.1:" + strconv.Itoa(port)
	for _, name := range []string{"HTTPS_PROXY", "https_proxy"} {
		if err := os.Setenv(name, deadProxy); err != nil {
			return err
		}
	}
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		if err := os.Unsetenv(name); err != nil {
			return err
		}
	}
	root, err := framework.RepositoryRoot()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "synchub-targets-")
	if err != nil {
		return err
	}
	shared.options = servers.Options{Dir: dir, Bin: filepath.Join(root, "bin")}
	shared.targets = map[string]*servers.Target{}
	return nil
}

// cleanUp stops the servers. After a failure their files stay.
func cleanUp(passed bool) error {
	shared.Lock()
	defer shared.Unlock()
	var errs []error
	for _, target := range shared.targets {
		errs = append(errs, target.Stop())
	}
	if shared.etcd != nil {
		errs = append(errs, shared.etcd.Stop())
	}
	if passed {
		errs = append(errs, os.RemoveAll(shared.options.Dir))
	} else {
		fmt.Fprintln(os.Stderr, "the files of the servers are in", shared.options.Dir)
	}
	return errors.Join(errs...)
}

// startTarget returns a cluster of this package, which it starts if no test has needed it yet.
func startTarget(t *testing.T, name string) *servers.Target {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if target, ok := shared.targets[name]; ok {
		return target
	}
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	if shared.etcd == nil {
		etcd, err := servers.StartEtcd(ctx, shared.options, "etcd")
		if err != nil {
			t.Fatal(err)
		}
		shared.etcd = etcd
	}
	target, err := servers.StartTarget(ctx, shared.options, name, servers.TargetOptions{Etcd: shared.etcd})
	if err != nil {
		t.Fatal(err)
	}
	shared.targets[name] = target
	if err := framework.Apply(ctx, target.Config, definitions); err != nil {
		t.Fatal(err)
	}
	return target
}

// administrator returns a client that is not the hub's.
func administrator(t *testing.T, target *servers.Target) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(target.Config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// newNamespace makes a namespace for the test, which nobody else uses.
func newNamespace(t *testing.T, target *servers.Target) string {
	t.Helper()
	name := "test-" + strings.ToLower(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return -1
	}, t.Name()))
	if err := framework.Apply(t.Context(), target.Config, "{apiVersion: v1, kind: Namespace, metadata: {name: "+name+"}}"); err != nil {
		t.Fatal(err)
	}
	return name
}

// kubeconfigAt returns the administrator's kubeconfig with another server, which leads to the same cluster.
func kubeconfigAt(t *testing.T, target *servers.Target, server string) []byte {
	t.Helper()
	content, err := os.ReadFile(target.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.ReplaceAll(string(content), target.Config.Host, server)
	if changed == string(content) && server != target.Config.Host {
		t.Fatalf("the kubeconfig of %s does not name its server", target.Name)
	}
	return []byte(changed)
}

// eventually waits with the package's patience.
func eventually(t *testing.T, what func(g Gomega)) {
	t.Helper()
	NewWithT(t).Eventually(what).WithContext(t.Context()).WithTimeout(eventuallyTimeout).WithPolling(20 * time.Millisecond).Should(Succeed())
}
