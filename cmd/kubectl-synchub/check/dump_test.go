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

package check

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes/scheme"
	restfake "k8s.io/client-go/rest/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
)

// written returns the content of all files of a dump, by name.
func written(t *testing.T, files *dump) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(files.directory)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, entry := range entries {
		content, err := fs.ReadFile(os.DirFS(files.directory), entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		all[entry.Name()] = string(content)
	}
	return all
}

func newTestDump(t *testing.T) *dump {
	t.Helper()
	files, err := newDump(filepath.Join(t.TempDir(), "report"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// reporter is the index of events that API servers have.
func reporter(object client.Object) []string {
	return []string{object.(*corev1.Event).ReportingController}
}

func TestDump(t *testing.T) {
	g := NewWithT(t)
	files := newTestDump(t)
	_, err := newDump(files.directory)
	g.Expect(err).To(MatchError(os.ErrExist), "other files are no part of a report")

	florin := &edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{Name: "florin", Annotations: map[string]string{
		corev1.LastAppliedConfigAnnotation: "confidential", "example.com/owner": "confidential", "synchub.dev/confirmed-cluster": "another",
	}}}
	florin.Status.Conditions = []metav1.Condition{{Type: "Ready", Message: "a \x1b[31m text"}}
	event := func(name, by, message string) *corev1.Event {
		return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, ReportingController: by, Message: message}
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "florin-kubeconfig"}, StringData: map[string]string{"kubeconfig": "confidential"}}
	from := fake.NewClientBuilder().WithScheme(cli.Scheme).WithIndex(&corev1.Event{}, "reportingComponent", reporter).
		WithObjects(florin, secret, event("ours", "synchub", "The hub syncs it."), event("theirs", "kubelet", "confidential")).Build()
	g.Expect(files.workspace(t.Context(), "workspace", from, &edgev2alpha1.SyncTargetList{})).To(Succeed())

	all := written(t, files)
	g.Expect(all).To(And(HaveLen(2), HaveKey("workspace-EventList.yaml"), HaveKey("workspace-SyncTargetList.yaml")))
	g.Expect(all["workspace-SyncTargetList.yaml"]).To(And(ContainSubstring("name: florin"), ContainSubstring("example.com/owner: (hidden)"), ContainSubstring("confirmed-cluster: another")))
	g.Expect(all["workspace-EventList.yaml"]).To(ContainSubstring("The hub syncs it."))
	for name, content := range all {
		g.Expect(content).NotTo(Or(ContainSubstring("confidential"), ContainSubstring("\x1b")), name)
	}
}

// The hub's namespace may have other programs, and the hub's Pods other containers.
func TestDumpOfTheHub(t *testing.T) {
	g := NewWithT(t)
	pod := func(name, app string) *corev1.Pod {
		container := func(name, value string) corev1.Container {
			return corev1.Container{
				Name: name, Command: []string{"confidential"}, Args: []string{value}, Env: []corev1.EnvVar{{Name: "TOKEN", Value: "confidential"}},
				LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{HTTPHeaders: []corev1.HTTPHeader{{Name: "Authorization", Value: "confidential"}}}}},
			}
		}
		made := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "hub", Name: name, Labels: map[string]string{"app.kubernetes.io/name": app}}}
		made.Spec.InitContainers = []corev1.Container{container(hubContainer, "confidential")}
		made.Spec.Containers = []corev1.Container{container(hubContainer, "--log-level=debug"), container("sidecar", "confidential")}
		made.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debugger", Args: []string{"confidential"}, Env: []corev1.EnvVar{{Name: "A", Value: "confidential"}}}}}
		ended := func(message string) corev1.ContainerState {
			return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Error", Message: message}}
		}
		made.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: hubContainer, LastTerminationState: ended("no Lease")}, {Name: "sidecar", LastTerminationState: ended("confidential")}}
		return made
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "hub", Name: "synchub", Labels: map[string]string{"app.kubernetes.io/name": "synchub"}}}
	deployment.Spec.Template.Spec = pod("", "").Spec
	published := &synchubv1alpha1.PublishedResource{ObjectMeta: metav1.ObjectMeta{Name: "widgets"}}
	published.Spec.Mutation = &synchubv1alpha1.Mutation{Down: []synchubv1alpha1.MutationStep{{Set: &synchubv1alpha1.SetMutation{Path: "spec.key", Value: apiextensionsv1.JSON{Raw: []byte(`"confidential"`)}}}}}
	objects := []client.Object{deployment, published, pod("synchub-7d5f9c8b4-x7k2p", "synchub"), pod("other", "confidential")}
	for _, about := range []string{"Pod/synchub-7d5f9c8b4-x7k2p", "ReplicaSet/synchub-7d5f9c8b4", "Deployment/synchub", "Lease/synchub"} {
		objects = append(objects, eventAbout(about, "about the hub"))
	}
	for _, about := range []string{"Pod/other", "Pod/synchub-agent-7d5f9c8b4-x7k2p", "Pod/synchub-agent-x7k2p", "ReplicaSet/synchub-agent", "Lease/synchub-7d5f9c8b4", "Deployment/synchub-7d5f9", "ConfigMap/synchub"} {
		objects = append(objects, eventAbout(about, "confidential"))
	}
	from := fake.NewClientBuilder().WithScheme(cli.Scheme).WithObjects(objects...).Build()
	logs := &restfake.RESTClient{NegotiatedSerializer: scheme.Codecs, Client: restfake.CreateHTTPClient(func(request *http.Request) (*http.Response, error) {
		g.Expect(request.URL.Path).To(Equal("/api/v1/namespaces/hub/pods/synchub-7d5f9c8b4-x7k2p/log"))
		g.Expect(request.URL.Query().Get("container")).To(Equal(hubContainer))
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("a line\nAuthorization: Bearer confidential-1"))}, nil
	})}
	files := newTestDump(t)
	g.Expect(files.hub(t.Context(), from, logs, "hub")).To(Succeed())

	all := written(t, files)
	g.Expect(all["hosting-PodList.yaml"]).To(And(ContainSubstring("--log-level=debug"), ContainSubstring("name: TOKEN"), ContainSubstring("name: sidecar"), ContainSubstring("name: debugger"), ContainSubstring("no Lease")))
	g.Expect(all["hosting-DeploymentList.yaml"]).To(ContainSubstring("--log-level=debug"))
	g.Expect(all["hosting-PublishedResourceList.yaml"]).To(And(ContainSubstring("path: spec.key"), ContainSubstring("value: (hidden)")))
	g.Expect(strings.Count(all["hosting-EventList.yaml"], "about the hub")).To(Equal(4))
	g.Expect(all).To(HaveKeyWithValue("log-synchub-7d5f9c8b4-x7k2p-synchub.txt", "a line\nAuthorization: (redacted)"))
	g.Expect(all).To(HaveLen(5), "no other container has its log in the dump")
	for name, content := range all {
		g.Expect(content).NotTo(ContainSubstring("confidential"), name)
	}
}

func eventAbout(kindAndName, message string) *corev1.Event {
	kind, name, _ := strings.Cut(kindAndName, "/")
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "hub", Name: strings.ToLower(kind) + "." + name},
		InvolvedObject: corev1.ObjectReference{Kind: kind, Name: name}, Message: message,
	}
}

// Statuses have the values of drifted objects and the results of aggregations. The report has the paths, and the expressions.
func TestDumpHasNoValuesOfObjects(t *testing.T) {
	g := NewWithT(t)
	failure := edgev2alpha1.ObjectFailure{Resource: "configmaps", Name: "settings", Reason: "Drifted", Differences: []edgev2alpha1.FieldDifference{
		{Path: ".data.a", Managers: []string{"kubectl-edit"}, Desired: `"confidential"`, Observed: `"confidential"`}, {Path: ".data.b", Desired: `"confidential"`},
	}}
	pair := edgev2alpha1.PlacementPair{ObjectFailure: failure, SyncTarget: "florin"}
	placement := &edgev2alpha1.EdgePlacement{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	placement.Spec.Aggregation = &edgev2alpha1.PlacementAggregation{Expression: "{'count': size(objects)}"}
	placement.Status = edgev2alpha1.EdgePlacementStatus{
		Failures: []edgev2alpha1.PlacementPair{pair}, Progressing: []edgev2alpha1.PlacementPair{pair}, ExcludedObjects: []edgev2alpha1.ObjectFailure{failure},
		Aggregation: &runtime.RawExtension{Raw: []byte(`{"confidential": "confidential"}`)},
	}
	target := &edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{Name: "florin"}, Status: edgev2alpha1.SyncTargetStatus{Failures: []edgev2alpha1.ObjectFailure{failure}}}
	config := &edgev2alpha1.SyncerConfig{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Status: edgev2alpha1.SyncerConfigStatus{Failures: []edgev2alpha1.ObjectFailure{failure}}}
	config.Spec.Upsync = []edgev2alpha1.UpsyncSet{{Annotations: map[string]string{"example.com/a": "confidential"}}}
	older := &edgev2alpha1.EdgeSyncConfig{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Status: edgev2alpha1.SyncerConfigStatus{Failures: []edgev2alpha1.ObjectFailure{failure}}}
	from := fake.NewClientBuilder().WithScheme(cli.Scheme).WithIndex(&corev1.Event{}, "reportingComponent", reporter).WithObjects(placement, target, config, older).Build()
	files := newTestDump(t)
	g.Expect(files.workspace(t.Context(), "workspace", from, &edgev2alpha1.EdgePlacementList{}, &edgev2alpha1.SyncTargetList{}, &edgev2alpha1.SyncerConfigList{}, &edgev2alpha1.EdgeSyncConfigList{})).To(Succeed())
	for name, content := range written(t, files) {
		g.Expect(content).NotTo(ContainSubstring("confidential"), name)
		if name != "workspace-EventList.yaml" {
			g.Expect(content).To(And(ContainSubstring("path: .data.b"), ContainSubstring("observed: (hidden)"), ContainSubstring("kubectl-edit")), name)
		}
	}
	g.Expect(written(t, files)["workspace-EdgePlacementList.yaml"]).To(And(ContainSubstring("size(objects)"), ContainSubstring("aggregation: (hidden)")))
}

func TestMessagesAreRedacted(t *testing.T) {
	const jwt = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJodWIifQ.c2lnbmF0dXJl"
	for text, want := range map[string]string{
		"got " + jwt + " from you\nand more":                                       "got (redacted) from you\nand more",
		`spec.data: Invalid value: "a \"b\" c": must be short`:                     `spec.data: Invalid value: (hidden): must be short`,
		`spec.replicas: Invalid value: 5: must be 1, x: Invalid value: 6: no`:      `spec.replicas: Invalid value: (hidden): must be 1, x: Invalid value: (hidden): no`,
		`x: Unsupported value: "a": supported values: "A", "B"`:                    `x: Unsupported value: (hidden): supported values: "A", "B"`,
		`x: Duplicate value: {"name":"a b"}`:                                       `x: Duplicate value: (hidden)`,
		`x: Invalid value: core.Thing{A:"a b", B:1}: no`:                           `x: Invalid value: (hidden)`,
		`x: Invalid value: "cut in the midd`:                                       `x: Invalid value: (hidden)`,
		`x: Not found: "a"`:                                                        `x: Not found: (hidden)`,
		`{"msg":"x: Invalid value: \"a b\": must be short","syncTarget":"florin"}`: `{"msg":"x: Invalid value: (hidden): must be short","syncTarget":"florin"}`,
		`{"msg":"x: Invalid value: \"a\\\"b\": must be short"}`:                    `{"msg":"x: Invalid value: (hidden)`,
		`x: Required value: name it`:                                               `x: Required value: name it`,
	} {
		if got := redactText(text); got != want {
			t.Errorf("want %s, got %s", want, got)
		}
	}
	report := &Report{Findings: []Finding{{Message: "the server answers " + jwt}}}
	fields, err := redacted(report)
	if err != nil || strings.Contains(fmt.Sprint(fields), jwt) || !strings.Contains(fmt.Sprint(fields), "the server answers") {
		t.Errorf("the findings are %v, %v", fields, err)
	}
}

func TestDumpIsBounded(t *testing.T) {
	g := NewWithT(t)
	files, err := newDump(filepath.Join(t.TempDir(), "report"))
	g.Expect(err).NotTo(HaveOccurred())
	total := 0
	for name := range strings.FieldsSeq("a b c d e f g h i j k l m") {
		g.Expect(files.write(name, []byte(strings.Repeat("x", maxFileBytes+1)))).To(Succeed())
		file, err := os.Stat(filepath.Join(files.directory, name))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(file.Mode().Perm()).To(Equal(os.FileMode(0o600)))
		total += int(file.Size())
	}
	g.Expect(total).To(BeNumerically("<", maxDumpBytes+maxFileBytes))
}

// fakeVersion is a hosting cluster with a version.
type fakeVersion string

func (v fakeVersion) ServerVersion() (*version.Info, error) {
	return &version.Info{GitVersion: string(v)}, nil
}

func TestBeforeTheInstallation(t *testing.T) {
	for name, test := range map[string]struct {
		version string
		denied  string
		want    []string
	}{
		"all is there":   {version: "v1.35.4", want: []string{"ok the hosting cluster has version v1.35.4, and you may install the chart into the namespace hub"}},
		"an old cluster": {version: "v1.29.0", want: []string{"PROBLEM the hosting cluster has version v1.29.0", "ok the hosting cluster"}},
		"a right lacks":  {version: "v1.35.4", denied: "clusterroles", want: []string{"PROBLEM to install the chart into the namespace hub you lack the rights create clusterroles"}},
	} {
		reviewed := fake.NewClientBuilder().WithScheme(cli.Scheme).WithInterceptorFuncs(interceptor.Funcs{
			Create: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.CreateOption) error {
				review := object.(*authorizationv1.SelfSubjectAccessReview)
				review.Status.Allowed = review.Spec.ResourceAttributes.Resource != test.denied
				return nil
			},
		}).Build()
		report := &Report{}
		report.preHosting(t.Context(), reviewed, fakeVersion(test.version), "hub")
		if len(report.Findings) != len(test.want) {
			t.Errorf("%s: got %+v", name, report.Findings)
			continue
		}
		for i, finding := range report.Findings {
			if got := string(finding.Result) + " " + finding.Message; !strings.HasPrefix(got, test.want[i]) {
				t.Errorf("%s: got %q", name, got)
			}
		}
	}
}
