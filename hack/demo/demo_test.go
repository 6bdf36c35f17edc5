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
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/synchub-dev/synchub/hack/screen"
	"github.com/synchub-dev/synchub/test/fixtures"
	"github.com/synchub-dev/synchub/test/framework/servers"
)

// newCheckout creates a directory that looks like the repository, and changes into it.
func newCheckout(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "go.mod"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(root)
	return root
}

func TestStateBeginsEmptyAndKeepsLogs(t *testing.T) {
	root := newCheckout(t)
	leftover := filepath.Join(root, stateDir, "etcd", "member")
	if err := os.MkdirAll(leftover, 0o755); err != nil {
		t.Fatal(err)
	}
	state, err := openState()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(state.close)
	if _, err := os.Stat(leftover); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what an earlier run left is still there: %v", err)
	}
	if err := os.WriteFile(state.kubeconfigOf("florin"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := state.keepLogs(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(state.kubeconfigOf("florin")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a kubeconfig without a server is still there: %v", err)
	}
	if _, err := os.Stat(filepath.Join(state.dir, logDir, ownLog)); err != nil {
		t.Errorf("the log is gone: %v", err)
	}
}

func TestStateIsForOneRunAtATime(t *testing.T) {
	newCheckout(t)
	first, err := openState()
	if err != nil {
		t.Fatal(err)
	}
	mine := filepath.Join(first.dir, "etcd")
	if err := os.Mkdir(mine, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := openState(); err == nil || !strings.Contains(err.Error(), "another demo runs") {
		t.Errorf("a second run is told %v", err)
	}
	if _, err := os.Stat(mine); err != nil {
		t.Errorf("the second run removed what the first one uses: %v", err)
	}
	first.close()
	again, err := openState()
	if err != nil {
		t.Fatalf("after the first run: %v", err)
	}
	again.close()
}

// Every command is ready to paste: it contains a path from the root of the repository to a kubeconfig that the demo
// keeps.
func TestSummary(t *testing.T) {
	newCheckout(t)
	state, err := openState()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(state.close)
	d := newDemo(state, screen.New(os.Stdout), "info")
	process, err := servers.Start(d.options, "hub", "/bin/sh", []string{"-c", "exit 0"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	<-process.Done()
	d.hub = &hub{Process: process, metrics: "127.0.0.1:1234"}
	summary := d.summary()
	for _, want := range []string{
		". .demo/env",
		"kubectl get deployments,edgeplacements,singleplacementslices,placementrevisions --all-namespaces --context shop",
		"kubectl get deployments,pods --all-namespaces --context guilder",
		"kubectl get publishedresources --context hosting",
		"kubectl get syncerconfigs --context guilder-mailbox",
		"kubectl synchub check --hosting-context hosting --hub-namespace default --context inventory",
		"docs/getting-started.md",
		".demo/logs/hub.log",
		"http://127.0.0.1:1234/metrics",
	} {
		if !strings.Contains(summary, want) {
			t.Errorf("there is no %q in\n%s", want, summary)
		}
	}
}

func TestEventuallyTellsWhatWasMissing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	missing := errors.New("no mailbox")
	checks := 0
	err := eventually(ctx, func(context.Context) error {
		if checks++; checks == 3 {
			cancel()
			return ctx.Err()
		}
		return missing
	})
	if !errors.Is(err, missing) {
		t.Errorf("the error is %v, want the one of the last check that was not cut short", err)
	}
	if err := eventually(t.Context(), func(context.Context) error { return nil }); err != nil {
		t.Errorf("a check that succeeds gives %v", err)
	}
}

func TestBecauseTellsWhyTheTimeWasUp(t *testing.T) {
	failure := errors.New("not ready")
	if err := because(t.Context(), failure); err.Error() != "not ready" {
		t.Errorf("with time left: %v", err)
	}
	ctx, cancel := limited(t.Context(), time.Nanosecond)
	defer cancel()
	<-ctx.Done()
	err := because(ctx, failure)
	if !errors.Is(err, failure) || err.Error() != "it took longer than 1ns: not ready" {
		t.Errorf("without: %v", err)
	}
}

func TestOneKubeconfigHasAllContexts(t *testing.T) {
	newCheckout(t)
	state, err := openState()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(state.close)
	for _, name := range []string{"shop", "florin"} {
		from := clientcmdapi.NewConfig()
		from.CurrentContext = "any"
		from.Contexts["any"] = &clientcmdapi.Context{Cluster: "any", AuthInfo: "any"}
		from.Clusters["any"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1/" + name}
		from.AuthInfos["any"] = &clientcmdapi.AuthInfo{Token: "of " + name}
		file := filepath.Join(t.TempDir(), "kubeconfig")
		if err := clientcmd.WriteToFile(*from, file); err != nil {
			t.Fatal(err)
		}
		if err := state.addContext(name, file); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{state.kubeconfig(), state.kubeconfigOf("shop")} {
		rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: file}
		config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: "shop"}).ClientConfig()
		if err != nil || config.Host != "https://127.0.0.1/shop" || config.BearerToken != "of shop" {
			t.Errorf("context shop of %s: %v, %v", file, config, err)
		}
	}
	environment, err := os.ReadFile(filepath.Join(state.dir, environmentFile))
	if err != nil || !strings.Contains(string(environment), "KUBECONFIG='"+state.kubeconfig()+"'") {
		t.Errorf("the environment is %s, %v", environment, err)
	}
}

func TestACommandCanBeTyped(t *testing.T) {
	for want, c := range map[string]command{
		"kubectl get pods --context shop":                         in("shop", "get", "pods"),
		"kubectl synchub status --context inventory":              in("inventory", "synchub", "status"),
		`kubectl patch web --patch '{"spec": {}}' --context shop`: in("shop", "patch", "web", "--patch", `{"spec": {}}`),
	} {
		if c.String() != want {
			t.Errorf("%q, want %q", c, want)
		}
	}
}

func TestFleetTable(t *testing.T) {
	fleet := newFleetTable([]*cluster{{name: "florin"}, {name: "guilder"}}, screen.New(os.Stdout))
	running := func(image string, updated int) *unstructured.Unstructured {
		return fixtures.Object(t, fmt.Sprintf(`{metadata: {generation: 2}, spec: {replicas: 2, template: {spec: {containers: [{image: %q}]}}},
			status: {observedGeneration: 2, updatedReplicas: %d, availableReplicas: 2}}`, image, updated))
	}
	fleet.set("shop", "florin", watch.Added, running("web:2", 1))
	fleet.set("shop", "guilder", watch.Added, running("web:1", 2))
	fleet.set("bank", "florin", watch.Added, running("web:3", 2))
	if want := "CLUSTER  IMAGE  AVAILABLE\nflorin   web:2  1/2\nguilder  web:1  2/2"; fleet.table("shop") != want {
		t.Errorf("got\n%s\nwant\n%s", fleet.table("shop"), want)
	}
	fleet.set("shop", "florin", watch.Deleted, running("web:2", 1))
	if running := fleet.running("shop"); !slices.Equal(running, []string{"guilder"}) {
		t.Errorf("web runs on %v", running)
	}
	if images := fleet.images("shop"); !slices.Equal(images, []string{"web:1"}) {
		t.Errorf("the images are %v", images)
	}
}

func TestAStatusOfAnOlderGenerationIsNotCounted(t *testing.T) {
	stale := fixtures.Object(t, `{metadata: {generation: 3}, spec: {replicas: 2}, status: {observedGeneration: 2, updatedReplicas: 2, availableReplicas: 2}}`)
	if got := availableOf(stale); got != "0/2" {
		t.Errorf("available: %s", got)
	}
}

func TestTheManifestHasItsNames(t *testing.T) {
	for document := range strings.SplitSeq(fmt.Sprintf(webManifest, 1), "\n---\n") {
		object := fixtures.Object(t, document)
		if object.GetKind() == "Deployment" && (object.GetNamespace() != namespace || object.GetName() != web || imageOf(object) != "example.org/web:1") {
			t.Errorf("the manifest has %s/%s with %s", object.GetNamespace(), object.GetName(), imageOf(object))
		}
	}
}

func TestIsAvailable(t *testing.T) {
	for manifest, want := range map[string]bool{
		`{}`:                               false,
		`{status: {}}`:                     false,
		`{status: {conditions: [broken]}}`: false,
		`{status: {conditions: [{type: Progressing, status: "True"}]}}`:                                    false,
		`{status: {conditions: [{type: Available, status: "False"}]}}`:                                     false,
		`{status: {conditions: [{type: Progressing, status: "True"}, {type: Available, status: "True"}]}}`: true,
	} {
		if got := isAvailable(fixtures.Object(t, manifest)); got != want {
			t.Errorf("%s: %v, want %v", manifest, got, want)
		}
	}
}
