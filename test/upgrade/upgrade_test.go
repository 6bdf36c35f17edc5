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

package upgrade

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/installation"
	"github.com/synchub-dev/synchub/test/framework/servers"
)

var former = flag.String("former", "", "directory of the former version: the hub is synchub in it, and the chart charts/synchub")

const (
	namespace = "shop"
	// objects stay as they are. edited are changed during the upgrade.
	objects, edited = 1000, 20
	timeout         = 3 * time.Minute
)

var (
	configMaps         = corev1.SchemeGroupVersion.WithResource("configmaps")
	syncerConfigs      = schema.GroupVersionResource{Group: "edge.kubestellar.io", Version: "v2alpha1", Resource: "syncerconfigs"}
	publishedResources = synchubv1alpha1.SchemeGroupVersion.WithResource("publishedresources")
)

// environment is an installation with one target, which also hosts the hub.
type environment struct {
	*installation.Installation
	g               *WithT
	mailbox, target *rest.Config
	// kubeconfig is the path of that for the target.
	kubeconfig string
}

func TestUpgrade(t *testing.T) {
	if *former == "" {
		t.Fatal("-former is missing: run `make test-upgrade`")
	}
	root, err := framework.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	before := installation.Version{Binary: filepath.Join(*former, "synchub"), Chart: filepath.Join(*former, "charts", "synchub")}
	after := installation.Version{Binary: filepath.Join(root, "bin", "synchub-race"), Chart: filepath.Join(root, "charts", "synchub")}
	e := start(t, before)
	hub := e.startHub(t)
	e.fill(t)
	placed := e.state(t)

	steps := []struct {
		name    string
		prepare func() error
	}{
		{"upgrade", func() error { return e.Upgrade(t.Context(), after) }},
		{"rollback", func() error { return e.Rollback(t.Context(), before) }},
	}
	for _, step := range steps {
		load := e.startLoad(t)
		e.g.Expect(step.prepare()).To(Succeed())
		next := e.startHub(t)
		code, err := hub.Terminate(t.Context())
		e.g.Expect(err).NotTo(HaveOccurred())
		e.g.Expect(code).To(BeZero(), hub.LogTail(20))
		hub = next
		e.g.Eventually(func() bool { return e.leads(t, hub) }).WithTimeout(timeout).Should(BeTrue())
		edits, longest := load.stop(t)
		e.g.Expect(hub.WaitIdle(t.Context(), 2*time.Second)).To(Succeed())
		t.Logf("%s: of %d edits the slowest took %s; the lease lasts 8s", step.name, edits, longest.Round(time.Millisecond))
		e.g.Expect(edits).To(BeNumerically(">", edited), "the load ran")
		e.g.Expect(differing(placed, e.state(t))).To(BeEmpty(), "%s: objects that nobody has changed were written", step.name)
	}
	code, err := hub.Terminate(t.Context())
	e.g.Expect(err).NotTo(HaveOccurred())
	e.g.Expect(code).To(BeZero())
}

// start starts the servers and installs a version.
func start(t *testing.T, version installation.Version) *environment {
	t.Helper()
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(timeout)
	suite, err := framework.StartSuite(t.Context(), "upgrade", servers.Options{Log: func(line string) { t.Log(line) }}, map[string]servers.TargetOptions{"hosting": {}})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		if logs, err := suite.Finish(t.Failed()); err != nil || logs != "" {
			t.Log("logs:", logs, err)
		}
	})
	hosting := suite.Targets["hosting"]
	made, err := installation.NewOf(t.Context(), suite.Options, suite.KCP, hosting, version, 1)
	g.Expect(err).NotTo(HaveOccurred())
	return &environment{Installation: made, g: g, target: hosting.Config, kubeconfig: hosting.Kubeconfig}
}

// startHub starts one more replica, and waits until it is ready, be it to lead or to stand by.
func (e *environment) startHub(t *testing.T) *installation.Hub {
	t.Helper()
	hub, err := e.StartHub()
	e.g.Expect(err).NotTo(HaveOccurred())
	e.g.Expect(hub.AwaitReady(t.Context())).To(Succeed())
	return hub
}

// leads reports whether a replica leads.
func (e *environment) leads(t *testing.T, hub *installation.Hub) bool {
	t.Helper()
	metrics, err := hub.Metrics(t.Context())
	return err == nil && metrics[`leader_election_master_status{name="synchub"}`] == 1
}

// fill registers the target and has the hub sync the objects.
func (e *environment) fill(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	inventory, err := e.NewInventory(ctx, "fleet")
	e.g.Expect(err).NotTo(HaveOccurred())
	kubeconfig, err := os.ReadFile(e.kubeconfig)
	e.g.Expect(err).NotTo(HaveOccurred())
	e.g.Expect(inventory.Register(ctx, "florin", kubeconfig, nil)).To(Succeed())
	e.g.Eventually(func() (err error) { e.mailbox, err = inventory.Mailbox(ctx, "florin"); return err }).Should(Succeed())
	var manifest strings.Builder
	fmt.Fprintf(&manifest, "apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n---\napiVersion: edge.kubestellar.io/v2alpha1\nkind: SyncerConfig\nmetadata: {name: %s}\nspec: {namespaceScope: {namespaces: [%s], resources: [{group: '', resource: configmaps}]}}\n", namespace, namespace, namespace)
	for i := range objects {
		fmt.Fprintf(&manifest, "---\n%s", configMap(fmt.Sprint("object-", i), "x"))
	}
	for i := range edited {
		fmt.Fprintf(&manifest, "---\n%s", configMap(fmt.Sprint("edited-", i), "x"))
	}
	e.g.Expect(framework.Apply(ctx, e.mailbox, manifest.String())).To(Succeed())
	e.g.Eventually(func() (string, error) {
		config, err := framework.Get(ctx, e.mailbox, syncerConfigs, "", namespace)
		if err != nil {
			return "", err
		}
		status, _ := config.Object["status"].(map[string]any)
		return fmt.Sprint(status["synced"]), nil
	}).Should(Equal(fmt.Sprint(objects + edited)))
}

func configMap(name, entry string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s}\ndata: {entry: '%s'}\n", name, namespace, entry)
}

// state returns the resourceVersions of the objects that nobody changes, on both sides, and the UIDs of the PublishedResources.
func (e *environment) state(t *testing.T) map[string]string {
	t.Helper()
	state := map[string]string{}
	for side, config := range map[string]*rest.Config{"mailbox": e.mailbox, "target": e.target} {
		all, err := framework.List(t.Context(), config, configMaps, namespace, "")
		e.g.Expect(err).NotTo(HaveOccurred())
		for i := range all {
			if strings.HasPrefix(all[i].GetName(), "object-") {
				state[side+" "+all[i].GetName()] = string(all[i].GetUID()) + " " + all[i].GetResourceVersion()
			}
		}
	}
	e.g.Expect(state).To(HaveLen(2 * objects))
	published, err := framework.List(t.Context(), e.target, publishedResources, "", "")
	e.g.Expect(err).NotTo(HaveOccurred())
	e.g.Expect(published).NotTo(BeEmpty())
	for i := range published {
		state["publishedresource "+published[i].GetName()] = string(published[i].GetUID())
	}
	return state
}

// differing names the objects of before that are not the same now. A new version of the chart may publish more resources.
func differing(before, now map[string]string) (names []string) {
	for name, state := range before {
		if now[name] != state {
			names = append(names, fmt.Sprintf("%s: %s, now %s", name, state, now[name]))
		}
	}
	slices.Sort(names)
	return names
}

// load edits objects one after the other, and waits for each edit until the target has it.
type load struct {
	cancel  context.CancelFunc
	done    chan error
	edits   int
	longest time.Duration
}

func (e *environment) startLoad(t *testing.T) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	running := &load{cancel: cancel, done: make(chan error, 1)}
	go func() { running.done <- running.run(ctx, e) }()
	return running
}

func (l *load) run(ctx context.Context, e *environment) error {
	for ctx.Err() == nil {
		name, entry, began := fmt.Sprint("edited-", l.edits%edited), fmt.Sprint(time.Now().UnixNano()), time.Now()
		// An edit that has begun is waited for.
		editing, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
		err := e.edit(editing, name, entry)
		cancel()
		if err != nil {
			return fmt.Errorf("the edit of %s: %w", name, err)
		}
		l.edits, l.longest = l.edits+1, max(l.longest, time.Since(began))
	}
	return nil
}

// edit changes an object in the mailbox, and returns when the target has the change.
func (e *environment) edit(ctx context.Context, name, entry string) error {
	if err := framework.Apply(ctx, e.mailbox, configMap(name, entry)); err != nil {
		return err
	}
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		object, err := framework.Get(ctx, e.target, configMaps, namespace, name)
		if err != nil {
			return err
		}
		if data, _ := object.Object["data"].(map[string]any); data["entry"] == entry {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// stop ends the load, and returns the number of edits and the time of the slowest one.
func (l *load) stop(t *testing.T) (edits int, longest time.Duration) {
	t.Helper()
	l.cancel()
	if err := <-l.done; err != nil {
		t.Fatal(err)
	}
	return l.edits, l.longest
}
