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

package unsupportedfields_test

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
	"github.com/synchub-dev/synchub/controllers/internal/unsupportedfields"
)

// testReference names the test of a field.
type testReference struct {
	// file is relative to the root of the repository, and text is the start of the test in the file.
	file, text string
}

// test names a test function, case a named row of its table, spec an end-to-end spec.
func test(file, name string) testReference {
	return testReference{file, "func " + name + "(t *testing.T)"}
}
func row(file, name string) testReference  { return testReference{file, `"` + name + `":`} }
func spec(file, text string) testReference { return testReference{file, `It("` + text + `"`} }

const (
	matching    = "controllers/plan/selection/matcher_test.go"
	union       = "controllers/plan/selection/union_test.go"
	publishes   = "controllers/publishedresource/published_test.go"
	compiles    = "controllers/publishedresource/compile_test.go"
	apis        = "test/e2e/publishing_api_test.go"
	objects     = "test/e2e/publishing_objects_test.go"
	mainJob     = "test/e2e/main_job_test.go"
	fields      = "test/e2e/fields_test.go"
	target      = "test/e2e/target_test.go"
	converts    = "controllers/plan/conversion/conversion_test.go"
	leaving     = "test/e2e/drain_test.go"
	registering = "test/e2e/escape_registration_test.go"
	escapes     = "test/e2e/escape_routes_test.go"
	likeNaive   = "controllers/plan/selection/property_test.go"
)

// behaviour lists, by kind, the fields with an effect, each with its test. A field stands for all fields below it.
var behaviour = map[string]map[string]testReference{
	"SyncTarget": {
		"spec.kubeconfigSecretRef.name":      spec(mainJob, "keeps two targets in sync while a third one does not exist"),
		"spec.kubeconfigSecretRef.namespace": spec(mainJob, "keeps two targets in sync while a third one does not exist"),
		"spec.kubeconfigSecretRef.key":       spec(mainJob, "keeps two targets in sync while a third one does not exist"),
		"spec.unschedulable":                 spec("test/e2e/registration_test.go", "publishes an API that only one target has, renews credentials without a gap, and cordons"),
		"spec.drain":                         spec(leaving, "deletes all copies from a drained target, and creates them again afterwards"),
		"spec.deletionPolicy":                spec(leaving, "continues after the hub was killed"),
		"spec.mailboxAccess":                 spec(leaving, "grants users their rights in the mailbox, and revokes them"),
		"spec.allowSharedCluster":            spec(leaving, "rejects the younger of two SyncTargets of one cluster, unless that is allowed"),
		"spec.suspend":                       spec(fields, "do not change the target of a suspended SyncTarget, and catch up afterwards"),
		"spec.adoption":                      spec(registering, "is adopted with all its objects by register --adopt"),
		"spec.namespaces.only":               spec(escapes, "neither reach nor leave protected namespaces, unless a SyncTarget or a PublishedResource allows it"),
		"spec.namespaces.allowProtected":     spec(escapes, "neither reach nor leave protected namespaces, unless a SyncTarget or a PublishedResource allows it"),
		"spec.connection":                    spec("test/e2e/tunnel_test.go", "keeps all copies while the link is cut, and gets each change once when it is back"),
		"spec.limits":                        test("controllers/synctarget/controller_test.go", "TestLimitsMakeAnotherConnection"),
	},
	"SyncerConfig": {
		"spec.namespaceScope.namespaces":                row(matching, "namespaceScope"),
		"spec.namespaceScope.resources[].group":         row(matching, "namespaceScope"),
		"spec.namespaceScope.resources[].resource":      row(matching, "namespaceScope"),
		"spec.namespaceScope.resources[].apiVersion":    row(matching, "another version"),
		"spec.namespaceScope.resources[].labelSelector": test(union, "TestLabelSelectorsAndAnnotations"),
		"spec.namespaceScope.resources[].annotations":   test(union, "TestLabelSelectorsAndAnnotations"),
		"spec.namespacedObjects[].group":                row(matching, "namespacedObjects"),
		"spec.namespacedObjects[].resource":             row(matching, "namespacedObjects"),
		"spec.namespacedObjects[].apiVersion":           row(matching, "another version"),
		"spec.namespacedObjects[].objectsByNamespace":   row(matching, "namespacedObjects"),
		"spec.namespacedObjects[].labelSelector":        test(union, "TestLabelSelectorsAndAnnotations"),
		"spec.namespacedObjects[].annotations":          test(union, "TestLabelSelectorsAndAnnotations"),
		"spec.clusterScope[].group":                     row(matching, "clusterScope"),
		"spec.clusterScope[].resource":                  row(matching, "clusterScope"),
		"spec.clusterScope[].apiVersion":                test(likeNaive, "TestMatchesLikeTheModel"),
		"spec.clusterScope[].objects":                   row(matching, "clusterScope"),
		"spec.clusterScope[].labelSelector":             test(union, "TestLabelSelectorsAndAnnotations"),
		"spec.clusterScope[].annotations":               test(union, "TestLabelSelectorsAndAnnotations"),
		"spec.upsync[].apiGroup":                        test(likeNaive, "TestMatchesLikeTheModel"),
		"spec.upsync[].resources":                       test(likeNaive, "TestMatchesLikeTheModel"),
		"spec.upsync[].namespaces":                      test(likeNaive, "TestMatchesLikeTheModel"),
		"spec.upsync[].names":                           test(likeNaive, "TestMatchesLikeTheModel"),
		"spec.upsync[].labelSelector":                   test(likeNaive, "TestMatchesLikeTheModel"),
		"spec.upsync[].annotations":                     test(likeNaive, "TestMatchesLikeTheModel"),
		"spec.conversions[].upstream.kind":              row(converts, "a kind"),
		"spec.conversions[].upstream.group":             row(converts, "a group"),
		"spec.conversions[].upstream.version":           row(converts, "a version"),
		"spec.conversions[].upstream.name":              row(converts, "a name"),
		"spec.conversions[].upstream.namespace":         row(converts, "in one namespace"),
		"spec.conversions[].downstream.kind":            row(converts, "a kind"),
		"spec.conversions[].downstream.group":           row(converts, "a group"),
		"spec.conversions[].downstream.version":         row(converts, "a version"),
		"spec.conversions[].downstream.name":            row(converts, "a name"),
		"spec.conversions[].downstream.namespace":       row(converts, "in one namespace"),
		"spec.statusReturn":                             spec(fields, "return no status if a config or a PublishedResource disables it"),
		"spec.deletionPolicy":                           spec(fields, "orphan copies by the policy of a config or a PublishedResource"),
		"spec.suspend":                                  spec(fields, "do not change objects that only a suspended config selects, and catch up afterwards"),
	},
	"EdgeSyncConfig": {
		"spec.downSyncedResources[].kind":         row(matching, "EdgeSyncConfig"),
		"spec.downSyncedResources[].group":        row(matching, "EdgeSyncConfig"),
		"spec.downSyncedResources[].version":      row(matching, "another version"),
		"spec.downSyncedResources[].name":         row(matching, "EdgeSyncConfig"),
		"spec.downSyncedResources[].namespace":    row(matching, "EdgeSyncConfig"),
		"spec.upSyncedResources[].kind":           test(likeNaive, "TestMatchesLikeTheModel"),
		"spec.upSyncedResources[].group":          test(likeNaive, "TestMatchesLikeTheModel"),
		"spec.upSyncedResources[].version":        test(likeNaive, "TestMatchesLikeTheModel"),
		"spec.upSyncedResources[].name":           test(likeNaive, "TestMatchesLikeTheModel"),
		"spec.upSyncedResources[].namespace":      test(likeNaive, "TestMatchesLikeTheModel"),
		"spec.conversions[].upstream.kind":        row(converts, "a kind"),
		"spec.conversions[].upstream.group":       row(converts, "a group"),
		"spec.conversions[].upstream.version":     row(converts, "a version"),
		"spec.conversions[].upstream.name":        row(converts, "a name"),
		"spec.conversions[].upstream.namespace":   row(converts, "in one namespace"),
		"spec.conversions[].downstream.kind":      row(converts, "a kind"),
		"spec.conversions[].downstream.group":     row(converts, "a group"),
		"spec.conversions[].downstream.version":   row(converts, "a version"),
		"spec.conversions[].downstream.name":      row(converts, "a name"),
		"spec.conversions[].downstream.namespace": row(converts, "in one namespace"),
	},
	"PublishedResource": {
		"spec.resource.group":                row(publishes, "a native by its resource"),
		"spec.resource.resource":             row(publishes, "a native by its resource"),
		"spec.resource.kind":                 row(publishes, "a native by its kind"),
		"spec.resource.version":              test("controllers/publishedresource/api_test.go", "TestVersionThatIsSynced"),
		"spec.api.source":                    test(publishes, "TestAPISourceOf"),
		"spec.api.schemaFrom.hostingCluster": spec(apis, "from any source of its definition, and can use it at once"),
		"spec.api.schemaFrom.syncTarget":     spec(apis, "from any source of its definition, and can use it at once"),
		"spec.api.schemaFrom.configMap.name": spec(mainJob, "keeps two targets in sync while a third one does not exist"),
		"spec.api.schemaFrom.configMap.key":  spec(fields, "take a schema from the key that a PublishedResource names"),
		"spec.api.identityHash":              spec(apis, "of another export that they have bound, by a claim with its identity"),
		"spec.installCRD":                    spec("test/e2e/publishing_crd_test.go", "installs the definition on targets and keeps it in sync, and does not change definitions of other installers"),
		"spec.projection.group":              row(compiles, "the group"),
		"spec.projection.version":            row(compiles, "the version"),
		"spec.projection.kind":               row(compiles, "the kind"),
		"spec.projection.plural":             row(compiles, "the plural"),
		"spec.projection.shortNames":         test("provider/schemas/project_test.go", "TestProject"),
		"spec.naming":                        spec(objects, "give an API and its objects other names, and change them in both directions"),
		"spec.select":                        spec("test/e2e/escape_memory_test.go", "limits one kind by its PublishedResource, so that other kinds are synced"),
		"spec.filter":                        test("controllers/objectsync/filter_mutation_test.go", "TestFilterByContent"),
		"spec.mutation.down":                 spec(objects, "give an API and its objects other names, and change them in both directions"),
		"spec.mutation.up":                   spec(objects, "give an API and its objects other names, and change them in both directions"),
		"spec.ignoreFields":                  test("controllers/objectsync/ignored_fields_test.go", "TestIgnoredFieldsAreTheTargets"),
		"spec.related":                       spec("test/e2e/related_test.go", "are synced with their primaries from either side, shared, and deleted with the last one"),
		"spec.deletion.waitForTarget":        spec(objects, "keep an object in the mailbox until its copy is deleted, and release it with the PublishedResource"),
		"spec.statusReturn":                  spec(fields, "return no status if a config or a PublishedResource disables it"),
		"spec.deletion.policy":               spec(fields, "orphan copies by the policy of a config or a PublishedResource"),
		"spec.compatibility":                 test("controllers/syncmanager/schemacheck_test.go", "TestIncompatibleResourcesAreNotSynced"),
		"spec.health":                        test("controllers/plan/health/health_test.go", "TestByRules"),
		"spec.statusAggregation":             test("controllers/plan/aggregation/aggregation_test.go", "TestCompile"),
		"spec.statusExpression":              test("controllers/plan/aggregation/aggregation_test.go", "TestExpression"),
		"spec.limits":                        spec("test/e2e/escape_memory_test.go", "limits one kind by its PublishedResource, so that other kinds are synced"),
		"spec.replace":                       spec(target, "replace an object with a changed immutable field, once the target accepts the new one in a dry run"),
		"spec.adoption":                      spec(target, "adopt the copies of KubeStellar's syncer"),
		"spec.protectedNamespaces":           spec(escapes, "neither reach nor leave protected namespaces, unless a SyncTarget or a PublishedResource allows it"),
		"spec.privilegedUpsync":              spec(escapes, "upsync no rights from a target to its mailbox, unless the PublishedResource allows it explicitly"),
		"spec.deletion.cascade":              spec(fields, "delete a namespace with its contents where cascade allows it"),
	},
}

// kind is one of our kinds, with the function that reports fields of its spec.
type kind struct {
	name, crd string
	spec      reflect.Type
	report    func(spec any) []string
}

// noFields reports nothing, for a kind whose fields all have an effect.
func noFields(any) []string { return nil }

var kinds = []kind{
	{"SyncTarget", "synctargets.edge.kubestellar.io", reflect.TypeFor[edgev2alpha1.SyncTargetSpec](),
		func(spec any) []string { return unsupportedfields.SyncTarget(spec.(*edgev2alpha1.SyncTargetSpec)) }},
	{"SyncerConfig", "syncerconfigs.edge.kubestellar.io", reflect.TypeFor[edgev2alpha1.SyncerConfigSpec](), noFields},
	{"EdgeSyncConfig", "edgesyncconfigs.edge.kubestellar.io", reflect.TypeFor[edgev2alpha1.EdgeSyncConfigSpec](), noFields},
	{"PublishedResource", "publishedresources.synchub.dev", reflect.TypeFor[synchubv1alpha1.PublishedResourceSpec](), noFields},
}

func (k kind) settings(t *testing.T) []setting {
	t.Helper()
	crd, err := schemas.CRD(k.crd)
	if err != nil {
		t.Fatal(err)
	}
	return settings(t, "spec", k.spec, crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"])
}

// reported returns the fields that the package reports for a spec with one setting.
func (k kind) reported(setting setting) []string {
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
	for _, kind := range kinds {
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
					t.Errorf("%s has an effect according to this test, and none according to the package", setting)
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
			content, err := os.ReadFile(filepath.Join("..", "..", "..", filepath.FromSlash(proof.file)))
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
		"SyncTarget":            unsupportedfields.SyncTarget(&edgev2alpha1.SyncTargetSpec{}),
		"SyncTarget, defaulted": unsupportedfields.SyncTarget(&edgev2alpha1.SyncTargetSpec{DeletionPolicy: edgev2alpha1.DeletionPolicyOrphan}),
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
	if got := unsupportedfields.SyncTarget(&spec); !slices.Equal(got, want) {
		t.Errorf("want %v, got %v", want, got)
	}
}

func TestSetCondition(t *testing.T) {
	other := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Ready"}
	conditions := []metav1.Condition{other}
	unsupportedfields.SetCondition(&conditions, 1, nil)
	if !slices.Equal(conditions, []metav1.Condition{other}) {
		t.Errorf("without fields: %v", conditions)
	}

	unsupportedfields.SetCondition(&conditions, 2, []string{"spec.a", "spec.b"})
	first := meta.FindStatusCondition(conditions, edgev2alpha1.ConditionNotImplemented)
	if first == nil || first.Status != metav1.ConditionTrue || first.Reason != unsupportedfields.ReasonFieldsWithoutEffect ||
		first.ObservedGeneration != 2 || !strings.Contains(first.Message, "spec.a, spec.b") {
		t.Fatalf("with fields: %+v", first)
	}
	before := slices.Clone(conditions)
	unsupportedfields.SetCondition(&conditions, 2, []string{"spec.a", "spec.b"})
	if !slices.Equal(conditions, before) {
		t.Errorf("the same again: %v", conditions)
	}
	unsupportedfields.SetCondition(&conditions, 3, []string{"spec.b"})
	if second := meta.FindStatusCondition(conditions, edgev2alpha1.ConditionNotImplemented); strings.Contains(second.Message, "spec.a") ||
		second.LastTransitionTime != before[1].LastTransitionTime || second.ObservedGeneration != 3 {
		t.Errorf("with fewer fields: %+v", second)
	}
	unsupportedfields.SetCondition(&conditions, 4, nil)
	if !slices.Equal(conditions, []metav1.Condition{other}) {
		t.Errorf("without fields again: %v", conditions)
	}
}

// Both API groups use the same name for the condition, since the package sets it on kinds of both.
func TestOneCondition(t *testing.T) {
	if edgev2alpha1.ConditionNotImplemented != synchubv1alpha1.ConditionNotImplemented {
		t.Error("the condition has two names")
	}
}
