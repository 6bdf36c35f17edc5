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
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/hack/screen"
	"github.com/synchub-dev/synchub/provider/targets/kubeconfig"
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
	if err := os.WriteFile(state.kubeconfig("florin"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := state.keepLogs(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(state.kubeconfig("florin")); !errors.Is(err, os.ErrNotExist) {
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

func TestRegistration(t *testing.T) {
	target := &target{name: "florin", labels: map[string]string{"env": "prod"}}
	content := "apiVersion: v1\nkind: Config\n\"quoted\": yes\n"
	manifest, err := target.registration(content)
	if err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(manifest, "---\n")[1:]
	if len(documents) != 2 {
		t.Fatalf("the manifest has %d documents: %s", len(documents), manifest)
	}
	var secret corev1.Secret
	var syncTarget edgev2alpha1.SyncTarget
	for i, object := range []any{&secret, &syncTarget} {
		if err := yaml.UnmarshalStrict([]byte(documents[i]), object); err != nil {
			t.Fatal(err)
		}
	}
	if secret.StringData[edgev2alpha1.DefaultCredentialKey] != content {
		t.Errorf("the Secret holds %q", secret.StringData)
	}
	if secret.Labels[edgev2alpha1.LabelCredential] != edgev2alpha1.CredentialKubeconfig {
		t.Errorf("the hub cannot see a Secret with the labels %v", secret.Labels)
	}
	if !kubeconfig.Allows(&secret, target.name, "any") {
		t.Errorf("the hub may not use a Secret with the annotations %v", secret.Annotations)
	}
	if reference := syncTarget.Spec.KubeconfigSecretRef; reference == nil || reference.Name != secret.Name {
		t.Errorf("the SyncTarget names the Secret %v, want %s", reference, secret.Name)
	}
	if syncTarget.Name != target.name || syncTarget.Labels["env"] != "prod" {
		t.Errorf("the SyncTarget is %s with the labels %v", syncTarget.Name, syncTarget.Labels)
	}
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
		"bin/kubectl --kubeconfig .demo/kubeconfigs/hosting.kubeconfig ",
		"bin/kubectl --kubeconfig .demo/kubeconfigs/inventory.kubeconfig ",
		"bin/kubectl --kubeconfig .demo/kubeconfigs/florin-mailbox.kubeconfig ",
		"bin/kubectl --kubeconfig .demo/kubeconfigs/florin.kubeconfig ",
		"bin/kubectl --kubeconfig .demo/kubeconfigs/guilder-mailbox.kubeconfig ",
		"bin/kubectl --kubeconfig .demo/kubeconfigs/guilder.kubeconfig ",
		"bin/kubectl-synchub --kubeconfig .demo/kubeconfigs/inventory.kubeconfig check --hosting-kubeconfig .demo/kubeconfigs/hosting.kubeconfig",
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
