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
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/apis/schemas"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
)

// testReference names the test of a field.
type testReference struct {
	// file is relative to the root of the repository, and text is the start of the test in the file.
	file, text string
}

// testFunc names a test function, tableRow a named row of its table, endToEnd an end-to-end spec.
func testFunc(file, name string) testReference {
	return testReference{file, "func " + name + "(t *testing.T)"}
}
func tableRow(file, name string) testReference { return testReference{file, `"` + name + `":`} }
func endToEnd(file, text string) testReference { return testReference{file, `It("` + text + `"`} }

const (
	matchingTests    = "controllers/plan/selection/matcher_test.go"
	unionTests       = "controllers/plan/selection/union_test.go"
	publishesTests   = "controllers/publishedresource/published_test.go"
	compilesTests    = "controllers/publishedresource/compile_test.go"
	apisTests        = "test/e2e/publishing_api_test.go"
	objectsTests     = "test/e2e/publishing_objects_test.go"
	mainJobTests     = "test/e2e/main_job_test.go"
	fieldsTests      = "test/e2e/fields_test.go"
	targetTests      = "test/e2e/target_test.go"
	convertsTests    = "controllers/plan/conversion/conversion_test.go"
	leavingTests     = "test/e2e/drain_test.go"
	registeringTests = "test/e2e/escape_registration_test.go"
	escapesTests     = "test/e2e/escape_routes_test.go"
	tenancyTests     = "test/e2e/tenancy_test.go"
	likeNaiveTests   = "controllers/plan/selection/property_test.go"
)

// behaviour lists, by kind, the fields with an effect, each with its test. A field stands for all fields below it.
var behaviour = map[string]map[string]testReference{
	"SyncTarget": {
		"spec.kubeconfigSecretRef.name":      endToEnd(mainJobTests, "keeps two targets in sync while a third one does not exist"),
		"spec.kubeconfigSecretRef.namespace": endToEnd(mainJobTests, "keeps two targets in sync while a third one does not exist"),
		"spec.kubeconfigSecretRef.key":       endToEnd(mainJobTests, "keeps two targets in sync while a third one does not exist"),
		"spec.unschedulable":                 endToEnd("test/e2e/registration_test.go", "publishes an API that only one target has, renews credentials without a gap, and cordons"),
		"spec.drain":                         endToEnd(leavingTests, "deletes all copies from a drained target, and creates them again afterwards"),
		"spec.deletionPolicy":                endToEnd(leavingTests, "continues after the hub was killed"),
		"spec.mailboxAccess":                 endToEnd(leavingTests, "grants users their rights in the mailbox, and revokes them"),
		"spec.allowSharedCluster":            endToEnd(leavingTests, "rejects the younger of two SyncTargets of one cluster, unless that is allowed"),
		"spec.suspend":                       endToEnd(fieldsTests, "do not change the target of a suspended SyncTarget, and catch up afterwards"),
		"spec.adoption":                      endToEnd(registeringTests, "is adopted with all its objects by register --adopt"),
		"spec.namespaces.only":               endToEnd(escapesTests, "neither reach nor leave protected namespaces, unless a SyncTarget or a PublishedResource allows it"),
		"spec.namespaces.allowProtected":     endToEnd(escapesTests, "neither reach nor leave protected namespaces, unless a SyncTarget or a PublishedResource allows it"),
		"spec.tenancy.namespaces":            endToEnd(tenancyTests, "have namespaces of their own, with the labels of the cluster's administrator"),
		"spec.tenancy.namespaceLabels":       endToEnd(tenancyTests, "have namespaces of their own, with the labels of the cluster's administrator"),
		"spec.tenancy.clusterScoped":         endToEnd(tenancyTests, "have namespaces of their own, with the labels of the cluster's administrator"),
		"spec.tenancy.namespaceTemplate":     testFunc("controllers/plan/tenancy/naming_test.go", "TestNamespace"),
		"spec.tenancy.identity":              testFunc("controllers/objectsync/author_server_test.go", "TestTenants"),
		"spec.tenancy.role":                  testFunc("controllers/objectsync/author_server_test.go", "TestTenants"),
		"spec.tenancy.resourceQuota":         testFunc("controllers/objectsync/author_server_test.go", "TestTenants"),
		"spec.tenancy.limitRange":            testFunc("controllers/tenants/decide_test.go", "TestDecide"),
		"spec.tenancy.mailboxIdentity":       testFunc("controllers/plan/tenancy/identity_test.go", "TestIdentities"),
		"spec.connection":                    endToEnd("test/e2e/tunnel_test.go", "keeps all copies while the link is cut, and gets each change once when it is back"),
		"spec.limits":                        testFunc("controllers/synctarget/controller_test.go", "TestLimitsMakeAnotherConnection"),
	},
	"SyncerConfig": {
		"spec.namespaceScope.namespaces":                tableRow(matchingTests, "namespaceScope"),
		"spec.namespaceScope.resources[].group":         tableRow(matchingTests, "namespaceScope"),
		"spec.namespaceScope.resources[].resource":      tableRow(matchingTests, "namespaceScope"),
		"spec.namespaceScope.resources[].apiVersion":    tableRow(matchingTests, "another version"),
		"spec.namespaceScope.resources[].labelSelector": testFunc(unionTests, "TestLabelSelectorsAndAnnotations"),
		"spec.namespaceScope.resources[].drift":         testFunc("controllers/plan/selection/settings_test.go", "TestSettings"),
		"spec.namespaceScope.resources[].ignoreFields":  testFunc("controllers/plan/selection/settings_test.go", "TestSettings"),
		"spec.namespaceScope.resources[].annotations":   testFunc(unionTests, "TestLabelSelectorsAndAnnotations"),
		"spec.namespacedObjects[].group":                tableRow(matchingTests, "namespacedObjects"),
		"spec.namespacedObjects[].resource":             tableRow(matchingTests, "namespacedObjects"),
		"spec.namespacedObjects[].apiVersion":           tableRow(matchingTests, "another version"),
		"spec.namespacedObjects[].objectsByNamespace":   tableRow(matchingTests, "namespacedObjects"),
		"spec.namespacedObjects[].labelSelector":        testFunc(unionTests, "TestLabelSelectorsAndAnnotations"),
		"spec.namespacedObjects[].drift":                testFunc("controllers/plan/selection/settings_test.go", "TestSettings"),
		"spec.namespacedObjects[].ignoreFields":         testFunc("controllers/plan/selection/settings_test.go", "TestSettings"),
		"spec.namespacedObjects[].annotations":          testFunc(unionTests, "TestLabelSelectorsAndAnnotations"),
		"spec.clusterScope[].group":                     tableRow(matchingTests, "clusterScope"),
		"spec.clusterScope[].resource":                  tableRow(matchingTests, "clusterScope"),
		"spec.clusterScope[].apiVersion":                testFunc(likeNaiveTests, "TestMatchesLikeTheModel"),
		"spec.clusterScope[].objects":                   tableRow(matchingTests, "clusterScope"),
		"spec.clusterScope[].labelSelector":             testFunc(unionTests, "TestLabelSelectorsAndAnnotations"),
		"spec.clusterScope[].drift":                     testFunc("controllers/plan/selection/settings_test.go", "TestSettings"),
		"spec.clusterScope[].ignoreFields":              testFunc("controllers/plan/selection/settings_test.go", "TestSettings"),
		"spec.clusterScope[].annotations":               testFunc(unionTests, "TestLabelSelectorsAndAnnotations"),
		"spec.upsync[].apiGroup":                        testFunc(likeNaiveTests, "TestMatchesLikeTheModel"),
		"spec.upsync[].resources":                       testFunc(likeNaiveTests, "TestMatchesLikeTheModel"),
		"spec.upsync[].namespaces":                      testFunc(likeNaiveTests, "TestMatchesLikeTheModel"),
		"spec.upsync[].names":                           testFunc(likeNaiveTests, "TestMatchesLikeTheModel"),
		"spec.upsync[].labelSelector":                   testFunc(likeNaiveTests, "TestMatchesLikeTheModel"),
		"spec.upsync[].annotations":                     testFunc(likeNaiveTests, "TestMatchesLikeTheModel"),
		"spec.conversions[].upstream.kind":              tableRow(convertsTests, "a kind"),
		"spec.conversions[].upstream.group":             tableRow(convertsTests, "a group"),
		"spec.conversions[].upstream.version":           tableRow(convertsTests, "a version"),
		"spec.conversions[].upstream.name":              tableRow(convertsTests, "a name"),
		"spec.conversions[].upstream.namespace":         tableRow(convertsTests, "in one namespace"),
		"spec.conversions[].downstream.kind":            tableRow(convertsTests, "a kind"),
		"spec.conversions[].downstream.group":           tableRow(convertsTests, "a group"),
		"spec.conversions[].downstream.version":         tableRow(convertsTests, "a version"),
		"spec.conversions[].downstream.name":            tableRow(convertsTests, "a name"),
		"spec.conversions[].downstream.namespace":       tableRow(convertsTests, "in one namespace"),
		"spec.statusReturn":                             endToEnd(fieldsTests, "return no status if a config or a PublishedResource disables it"),
		"spec.deletionPolicy":                           endToEnd(fieldsTests, "orphan copies by the policy of a config or a PublishedResource"),
		"spec.suspend":                                  endToEnd(fieldsTests, "do not change objects that only a suspended config selects, and catch up afterwards"),
	},
	"EdgeSyncConfig": {
		"spec.downSyncedResources[].kind":         tableRow(matchingTests, "EdgeSyncConfig"),
		"spec.downSyncedResources[].group":        tableRow(matchingTests, "EdgeSyncConfig"),
		"spec.downSyncedResources[].version":      tableRow(matchingTests, "another version"),
		"spec.downSyncedResources[].name":         tableRow(matchingTests, "EdgeSyncConfig"),
		"spec.downSyncedResources[].namespace":    tableRow(matchingTests, "EdgeSyncConfig"),
		"spec.upSyncedResources[].kind":           testFunc(likeNaiveTests, "TestMatchesLikeTheModel"),
		"spec.upSyncedResources[].group":          testFunc(likeNaiveTests, "TestMatchesLikeTheModel"),
		"spec.upSyncedResources[].version":        testFunc(likeNaiveTests, "TestMatchesLikeTheModel"),
		"spec.upSyncedResources[].name":           testFunc(likeNaiveTests, "TestMatchesLikeTheModel"),
		"spec.upSyncedResources[].namespace":      testFunc(likeNaiveTests, "TestMatchesLikeTheModel"),
		"spec.conversions[].upstream.kind":        tableRow(convertsTests, "a kind"),
		"spec.conversions[].upstream.group":       tableRow(convertsTests, "a group"),
		"spec.conversions[].upstream.version":     tableRow(convertsTests, "a version"),
		"spec.conversions[].upstream.name":        tableRow(convertsTests, "a name"),
		"spec.conversions[].upstream.namespace":   tableRow(convertsTests, "in one namespace"),
		"spec.conversions[].downstream.kind":      tableRow(convertsTests, "a kind"),
		"spec.conversions[].downstream.group":     tableRow(convertsTests, "a group"),
		"spec.conversions[].downstream.version":   tableRow(convertsTests, "a version"),
		"spec.conversions[].downstream.name":      tableRow(convertsTests, "a name"),
		"spec.conversions[].downstream.namespace": tableRow(convertsTests, "in one namespace"),
	},
	"PublishedResource": {
		"spec.resource.group":                tableRow(publishesTests, "a native by its resource"),
		"spec.resource.resource":             tableRow(publishesTests, "a native by its resource"),
		"spec.resource.kind":                 tableRow(publishesTests, "a native by its kind"),
		"spec.resource.version":              testFunc("controllers/publishedresource/api_test.go", "TestVersionThatIsSynced"),
		"spec.api.source":                    testFunc(publishesTests, "TestAPISourceOf"),
		"spec.api.schemaFrom.hostingCluster": endToEnd(apisTests, "from any source of its definition, and can use it at once"),
		"spec.api.schemaFrom.syncTarget":     endToEnd(apisTests, "from any source of its definition, and can use it at once"),
		"spec.api.schemaFrom.configMap.name": endToEnd(mainJobTests, "keeps two targets in sync while a third one does not exist"),
		"spec.api.schemaFrom.configMap.key":  endToEnd(fieldsTests, "take a schema from the key that a PublishedResource names"),
		"spec.api.schemaFrom.builtIn":        testFunc("controllers/apiresourceschema/server_test.go", "TestSchemaOfTheHub"),
		"spec.api.identityHash":              endToEnd(apisTests, "of another export that they have bound, by a claim with its identity"),
		"spec.installCRD":                    endToEnd("test/e2e/publishing_crd_test.go", "installs the definition on targets and keeps it in sync, and does not change definitions of other installers"),
		"spec.projection.group":              tableRow(compilesTests, "the group"),
		"spec.projection.version":            tableRow(compilesTests, "the version"),
		"spec.projection.kind":               tableRow(compilesTests, "the kind"),
		"spec.projection.plural":             tableRow(compilesTests, "the plural"),
		"spec.projection.shortNames":         testFunc("provider/schemas/project_test.go", "TestProject"),
		"spec.naming":                        endToEnd(objectsTests, "give an API and its objects other names, and change them in both directions"),
		"spec.select":                        endToEnd("test/e2e/escape_memory_test.go", "limits one kind by its PublishedResource, so that other kinds are synced"),
		"spec.filter":                        testFunc("controllers/objectsync/filter_mutation_test.go", "TestFilterByContent"),
		"spec.mutation.down":                 endToEnd(objectsTests, "give an API and its objects other names, and change them in both directions"),
		"spec.mutation.up":                   endToEnd(objectsTests, "give an API and its objects other names, and change them in both directions"),
		"spec.ignoreFields":                  testFunc("controllers/objectsync/ignored_fields_test.go", "TestIgnoredFieldsAreTheTargets"),
		"spec.drift":                         testFunc("controllers/objectsync/drift_server_test.go", "TestReportedDriftIsTakenBack"),
		"spec.namespaceReferences[]":         testFunc("controllers/plan/tenancy/references_test.go", "TestRewrite"),
		"spec.related":                       endToEnd("test/e2e/related_test.go", "are synced with their primaries from either side, shared, and deleted with the last one"),
		"spec.deletion.waitForTarget":        endToEnd(objectsTests, "keep an object in the mailbox until its copy is deleted, and release it with the PublishedResource"),
		"spec.statusReturn":                  endToEnd(fieldsTests, "return no status if a config or a PublishedResource disables it"),
		"spec.deletion.policy":               endToEnd(fieldsTests, "orphan copies by the policy of a config or a PublishedResource"),
		"spec.compatibility":                 testFunc("controllers/syncmanager/schemacheck_test.go", "TestIncompatibleResourcesAreNotSynced"),
		"spec.health":                        testFunc("controllers/plan/health/health_test.go", "TestByRules"),
		"spec.statusAggregation":             testFunc("controllers/plan/aggregation/aggregation_test.go", "TestCompile"),
		"spec.statusExpression":              testFunc("controllers/plan/aggregation/aggregation_test.go", "TestExpression"),
		"spec.limits":                        endToEnd("test/e2e/escape_memory_test.go", "limits one kind by its PublishedResource, so that other kinds are synced"),
		"spec.replace":                       endToEnd(targetTests, "replace an object with a changed immutable field, once the target accepts the new one in a dry run"),
		"spec.adoption":                      endToEnd(targetTests, "adopt the copies of KubeStellar's syncer"),
		"spec.protectedNamespaces":           endToEnd(escapesTests, "neither reach nor leave protected namespaces, unless a SyncTarget or a PublishedResource allows it"),
		"spec.privilegedUpsync":              endToEnd(escapesTests, "upsync no rights from a target to its mailbox, unless the PublishedResource allows it explicitly"),
		"spec.deletion.cascade":              endToEnd(fieldsTests, "delete a namespace with its contents where cascade allows it"),
	},
}

// apiKind is one of our kinds, with the function that reports fields of its spec.
type apiKind struct {
	name, crd string
	spec      reflect.Type
	report    func(spec any) []string
}

// noFields reports nothing, for a kind whose fields all have an effect.
func noFields(any) []string { return nil }

var apiKinds = []apiKind{
	{"SyncTarget", "synctargets.edge.kubestellar.io", reflect.TypeFor[edgev2alpha1.SyncTargetSpec](),
		func(spec any) []string { return unsupportedFields(spec.(*edgev2alpha1.SyncTargetSpec)) }},
	{"SyncerConfig", "syncerconfigs.edge.kubestellar.io", reflect.TypeFor[edgev2alpha1.SyncerConfigSpec](), noFields},
	{"EdgeSyncConfig", "edgesyncconfigs.edge.kubestellar.io", reflect.TypeFor[edgev2alpha1.EdgeSyncConfigSpec](), noFields},
	{"PublishedResource", "publishedresources.synchub.dev", reflect.TypeFor[synchubv1alpha1.PublishedResourceSpec](), noFields},
}

func (k apiKind) settings(t *testing.T) []setting {
	t.Helper()
	crd, err := schemas.CRD(k.crd)
	if err != nil {
		t.Fatal(err)
	}
	return settings(t, "spec", k.spec, crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"])
}

// reported returns the fields that are reported for a spec with one setting.
func (k apiKind) reported(setting setting) []string {
	spec := reflect.New(k.spec)
	spec.Elem().Set(setting.value)
	return k.report(spec.Interface())
}

// isOrHolds reports whether a field is the other one, or a parent of it.
func isOrHolds(field, other string) bool {
	rest, ok := strings.CutPrefix(other, field)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// Every field of our API that a user can set either has an effect, which a test proves, or is reported as without effect.
func TestEveryFieldActsOrIsReported(t *testing.T) {
	for _, kind := range apiKinds {
		t.Run(kind.name, func(t *testing.T) {
			acting := behaviour[kind.name]
			used := map[string]bool{}
			for _, setting := range kind.settings(t) {
				reported := kind.reported(setting)
				acts := false
				for field := range acting {
					if isOrHolds(field, setting.path) {
						acts, used[field] = true, true
					}
				}
				switch {
				case acts && len(reported) > 0:
					t.Errorf("%s has an effect according to this test, and is reported as unsupported", setting)
				case !acts && len(reported) == 0:
					t.Errorf("%s has no effect in this test, and is not reported as unsupported", setting)
				case len(reported) > 1:
					t.Errorf("%s is reported %d times: %v", setting, len(reported), reported)
				}
				for _, field := range reported {
					checkReport(t, setting, field, acting)
				}
			}
			for field := range acting {
				if !used[field] {
					t.Errorf("%s is not a field that can be set", field)
				}
			}
		})
	}
}

// checkReport checks that a reported field is the set one or a parent of it, and not a parent of a field with an effect.
func checkReport(t *testing.T, setting setting, reported string, acting map[string]testReference) {
	t.Helper()
	if !isOrHolds(reported, setting.path) {
		t.Errorf("%s: %s is reported, which is not set", setting, reported)
	}
	for field := range acting {
		if isOrHolds(reported, field) {
			t.Errorf("%s: %s is reported, although %s does something", setting, reported, field)
		}
	}
}

func TestProofsExist(t *testing.T) {
	proofs := map[string]map[string]testReference{}
	for kind, fields := range behaviour {
		proofs[kind] = maps.Clone(fields)
		maps.Copy(proofs[kind], reportedFields[kind])
	}
	for kind, fields := range proofs {
		for field, proof := range fields {
			content, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(proof.file)))
			if err != nil {
				t.Errorf("%s %s: %v", kind, field, err)
				continue
			}
			if !strings.Contains(string(content), proof.text) {
				t.Errorf("%s %s: there is no %s in %s", kind, field, proof.text, proof.file)
			}
		}
	}
}

// An object with only default values has no fields to report.
func TestDefaultsAreNotReported(t *testing.T) {
	for name, reported := range map[string][]string{
		"SyncTarget":            unsupportedFields(&edgev2alpha1.SyncTargetSpec{}),
		"SyncTarget, defaulted": unsupportedFields(&edgev2alpha1.SyncTargetSpec{DeletionPolicy: edgev2alpha1.DeletionPolicyOrphan}),
	} {
		if len(reported) > 0 {
			t.Errorf("%s: %v", name, reported)
		}
	}
}

func TestAllFieldsAtOnce(t *testing.T) {
	spec := edgev2alpha1.SyncTargetSpec{
		Unschedulable: true, Cells: map[string]string{"zone": "a"}, Suspend: true, EvictAfter: new(metav1.Now()), //nolint:staticcheck // deprecated fields
		SupportedAPIExports: []edgev2alpha1.APIExportReference{{Export: "a"}, {Export: "b"}}, //nolint:staticcheck // a deprecated field
	}
	want := []string{"spec.evictAfter", "spec.supportedAPIExports", "spec.cells"}
	if got := unsupportedFields(&spec); !slices.Equal(got, want) {
		t.Errorf("want %v, got %v", want, got)
	}
}

func TestSetCondition(t *testing.T) {
	other := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Ready"}
	conditions := []metav1.Condition{other}
	setNotImplementedCondition(&conditions, 1, nil)
	if !slices.Equal(conditions, []metav1.Condition{other}) {
		t.Errorf("without fields: %v", conditions)
	}

	setNotImplementedCondition(&conditions, 2, []string{"spec.a", "spec.b"})
	first := meta.FindStatusCondition(conditions, edgev2alpha1.ConditionNotImplemented)
	if first == nil || first.Status != metav1.ConditionTrue || first.Reason != ReasonFieldsWithoutEffect ||
		first.ObservedGeneration != 2 || !strings.Contains(first.Message, "spec.a, spec.b") {
		t.Fatalf("with fields: %+v", first)
	}
	before := slices.Clone(conditions)
	setNotImplementedCondition(&conditions, 2, []string{"spec.a", "spec.b"})
	if !slices.Equal(conditions, before) {
		t.Errorf("the same again: %v", conditions)
	}
	setNotImplementedCondition(&conditions, 3, []string{"spec.b"})
	if second := meta.FindStatusCondition(conditions, edgev2alpha1.ConditionNotImplemented); strings.Contains(second.Message, "spec.a") ||
		second.LastTransitionTime != before[1].LastTransitionTime || second.ObservedGeneration != 3 {
		t.Errorf("with fewer fields: %+v", second)
	}
	setNotImplementedCondition(&conditions, 4, nil)
	if !slices.Equal(conditions, []metav1.Condition{other}) {
		t.Errorf("without fields again: %v", conditions)
	}
}

// Both API groups use the same name for the condition, since it may be set on kinds of both.
func TestOneCondition(t *testing.T) {
	if edgev2alpha1.ConditionNotImplemented != synchubv1alpha1.ConditionNotImplemented {
		t.Error("the condition has two names")
	}
}
