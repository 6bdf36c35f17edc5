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

package synctarget

import (
	"maps"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/synchub-dev/synchub/apis/schemas"
)

// deprecation marks a field without effect in its description, in the form that Go's tools know.
const deprecation = "Deprecated: "

const (
	countedTests   = "controllers/syncerconfig/status_test.go"
	reportingTests = "controllers/synctarget/report_test.go"
	recordingTests = "controllers/synctarget/synced_resources_test.go"
	trustingTests  = "test/e2e/escape_trust_test.go"
)

// reportedConfigFields are the fields in the status of a config.
var reportedConfigFields = map[string]testReference{
	"status.conditions":         testFunc(countedTests, "TestStatus"),
	"status.observedGeneration": testFunc(countedTests, "TestStatus"),
	"status.selected":           testFunc(countedTests, "TestStatus"),
	"status.synced":             testFunc(countedTests, "TestStatus"),
	"status.ready":              endToEnd("test/e2e/placement_status_test.go", "reports the sync status and the health of the objects on each cluster"),
	"status.failed":             testFunc(countedTests, "TestStatus"),
	"status.failures":           testFunc("controllers/objectsync/summary_test.go", "TestSummary"),
}

// reportedFields lists, by kind, the status fields that the hub sets, each with its test. A field stands for all fields
// below it.
var reportedFields = map[string]map[string]testReference{
	"SyncTarget": {
		"status.conditions":              testFunc(reportingTests, "TestConditions"),
		"status.syncedResources":         testFunc(recordingTests, "TestSyncedResources"),
		"status.lastSyncerHeartbeatTime": testFunc(reportingTests, "TestAdvanceHeartbeat"),
		"status.mailbox":                 endToEnd(mainJobTests, "keeps two targets in sync while a third one does not exist"),
		"status.versions":                testFunc("controllers/synctarget/status_test.go", "TestStatusTellsOfTheObjects"),
		"status.clusterID":               endToEnd(leavingTests, "rejects the younger of two SyncTargets of one cluster, unless that is allowed"),
		"status.hub":                     endToEnd("test/e2e/standby_test.go", "gives up the Lease to a replica that can, and nothing is lost or duplicated"),
		"status.hubVersion":              endToEnd("test/e2e/standby_test.go", "gives up the Lease to a replica that can, and nothing is lost or duplicated"),
		"status.observedClusterID":       endToEnd(trustingTests, "is one cluster for each SyncTarget, until an operator confirms another one"),
		"status.formerClusters":          endToEnd(trustingTests, "is one cluster for each SyncTarget, until an operator confirms another one"),
		"status.counts":                  testFunc("controllers/synctarget/status_test.go", "TestStatusTellsOfTheObjects"),
		"status.failures":                testFunc("controllers/synctarget/status_test.go", "TestStatusTellsOfTheObjects"),
		"status.pendingSince":            testFunc("controllers/synctarget/status_test.go", "TestStatusTellsOfTheObjects"),
		"status.credentials":             testFunc("controllers/synctarget/token_renewal_test.go", "TestStatusTellsOfTheToken"),
		"status.tunnel":                  endToEnd("test/e2e/tunnel_test.go", "is the only cluster that its token admits"),
		"status.storeWentBack":           testFunc("test/restore/restore_test.go", "TestRestoredKCP"),
		"status.cleanup":                 endToEnd(leavingTests, "deletes all copies from a drained target, and creates them again afterwards"),
	},
	"SyncerConfig":   reportedConfigFields,
	"EdgeSyncConfig": reportedConfigFields,
	"PublishedResource": {
		"status.conditions":         testFunc(publishesTests, "TestAPISourceOf"),
		"status.observedGeneration": endToEnd("test/e2e/fault_truth_test.go", "is correct for rollouts in a mailbox, and names each failing object"),
		"status.hub":                testFunc("controllers/apiresourceschema/server_test.go", "TestResourceOfAnotherHub"),
		"status.schemaName":         endToEnd(apisTests, "from any source of its definition, and can use it at once"),
		"status.mailboxes":          testFunc("controllers/syncmanager/fleet_counter_test.go", "TestCount"),
		"status.targets":            testFunc("controllers/syncmanager/fleet_counter_test.go", "TestCount"),
		"status.objects":            testFunc("controllers/syncmanager/fleet_counter_test.go", "TestCount"),
	},
}

// leaves calls found with the path of each leaf field of a schema. deprecated is true if the description of the field, or
// of a field above it, contains the deprecation.
func leaves(path string, of apiextensionsv1.JSONSchemaProps, deprecated bool, found func(path string, deprecated bool)) {
	deprecated = deprecated || strings.Contains(of.Description, deprecation)
	if of.Items != nil && of.Items.Schema != nil && len(of.Items.Schema.Properties) > 0 {
		of, path = *of.Items.Schema, path+"[]"
	}
	if len(of.Properties) == 0 {
		found(path, deprecated)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(of.Properties)) {
		leaves(path+"."+name, of.Properties[name], deprecated, found)
	}
}

// Every status field is set by the hub, which a test proves, or is deprecated. Every spec field that is reported as without
// effect is deprecated too.
func TestEveryFieldIsReportedOrDeprecated(t *testing.T) {
	for _, kind := range apiKinds {
		t.Run(kind.name, func(t *testing.T) {
			crd, err := schemas.CRD(kind.crd)
			if err != nil {
				t.Fatal(err)
			}
			root := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
			used := map[string]bool{}
			leaves("status", root.Properties["status"], false, func(path string, deprecated bool) {
				isReported := false
				for field := range reportedFields[kind.name] {
					if isOrHolds(field, path) {
						isReported, used[field] = true, true
					}
				}
				// A field that is set may have a field below it that is not.
				if !isReported && !deprecated {
					t.Errorf("%s has no test, and its type does not document that it is unused", path)
				}
			})
			for field := range reportedFields[kind.name] {
				if !used[field] {
					t.Errorf("%s is not a field of the status", field)
				}
			}
			deprecatedFields := map[string]bool{}
			leaves("spec", root.Properties["spec"], false, func(path string, deprecated bool) { deprecatedFields[path] = deprecated })
			for _, setting := range kind.settings(t) {
				isReported := len(kind.reported(setting)) > 0
				for path, deprecated := range deprecatedFields {
					if isOrHolds(path, setting.path) && deprecated != isReported {
						t.Errorf("%s: deprecated in its type: %v; reported as without effect: %v", setting.path, deprecated, isReported)
					}
				}
			}
		})
	}
}
