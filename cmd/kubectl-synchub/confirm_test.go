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
	"strings"
	"testing"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

func confirmsClusters(t *testing.T, f *testFleet) {
	t.Helper()
	fail(t, "there is nothing to confirm", "confirm-cluster", "florin")
	syncTarget := f.syncTarget(t)
	syncTarget.Status.ClusterID, syncTarget.Status.ObservedClusterID = "before", "now"
	if err := f.admin.Status().Update(t.Context(), syncTarget); err != nil {
		t.Fatal(err)
	}
	confirmed := func() string { return f.syncTarget(t).Annotations[edgev2alpha1.AnnotationConfirmedCluster] }
	succeed(t, "confirm-cluster", "florin", "--dry-run=client")
	if got := confirmed(); got != "" {
		t.Errorf("a dry run has confirmed %q", got)
	}
	if got := succeed(t, "confirm-cluster", "florin"); !strings.Contains(got.errs, "stood for the cluster before; the cluster now answers now") || !strings.HasSuffix(got.out, "florin confirmed\n") {
		t.Errorf("it prints\n%s%s", got.out, got.errs)
	}
	if got := confirmed(); got != "now" {
		t.Errorf("it has confirmed %q", got)
	}

	// Until the hub takes the confirmation, Ready is about the former cluster.
	f.report(t, "True", "MailboxReady", "HeartbeatHealthy", "SyncerReady", "SyncerAuthorized", "Ready")
	fail(t, "the SyncTarget florin was not ready after 500ms", "confirm-cluster", "florin", "--wait", "--timeout", "500ms")
	syncTarget = f.syncTarget(t)
	syncTarget.Status.ClusterID = "now"
	if err := f.admin.Status().Update(t.Context(), syncTarget); err != nil {
		t.Fatal(err)
	}
	f.report(t, "False", "Ready")
	fail(t, "the SyncTarget florin was not ready after 500ms", "confirm-cluster", "florin", "--wait", "--timeout", "500ms")
	f.report(t, "True", "Ready")
	if got := succeed(t, "confirm-cluster", "florin", "--wait"); !strings.HasSuffix(got.out, "florin ready\n") {
		t.Errorf("it prints\n%s%s", got.out, got.errs)
	}
}
