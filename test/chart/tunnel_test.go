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

package chart

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/registration"
	"github.com/synchub-dev/synchub/test/fixtures"
)

const (
	tunnelNamespace = "synchub-tunnel"
	tunnelURL       = "https://hub.example.org:8443"
)

// tunnelObjects returns the rendered objects of the chart of the tunnel, by kind.
func tunnelObjects(t *testing.T, args ...string) (found map[string]*unstructured.Unstructured, err error) {
	t.Helper()
	helm, _, root := paths(t)
	rendered, err := helm.Run(t.Context(), append([]string{
		"template", "synchub-tunnel", filepath.Join(root, "charts", "synchub-tunnel"), "--namespace", tunnelNamespace, "--kube-version", kubeVersion,
		"--set", "hub.url=" + tunnelURL + ",syncTarget.uid=uid",
	}, args...)...)
	if err != nil {
		return nil, err
	}
	found = map[string]*unstructured.Unstructured{}
	for document := range strings.SplitSeq(rendered, "\n---\n") {
		if object := fixtures.Object(t, document); len(object.Object) > 0 {
			found[object.GetKind()] = object
		}
	}
	return found, nil
}

// permissions returns what rules allow, one verb on one resource each.
func permissions(rules []rbacv1.PolicyRule) []string {
	all := map[string]bool{}
	for _, rule := range rules {
		for _, verb := range rule.Verbs {
			for _, url := range rule.NonResourceURLs {
				all[verb+" "+url] = true
			}
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					all[verb+" "+group+"/"+resource+" "+strings.Join(rule.ResourceNames, ",")] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// The chart installs what `kubectl synchub register --tunnel` prints.
func TestTunnelChartIsThePrintedManifest(t *testing.T) {
	found, err := tunnelObjects(t)
	if err != nil {
		t.Fatal(err)
	}
	printed, err := (&registration.Tunnel{Namespace: tunnelNamespace, Image: "ghcr.io/synchub-dev/synchub-tunnel:0.1.0", URL: tunnelURL, CA: []byte("authority")}).Manifest(
		&edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{UID: "uid"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range printed {
		compareWithChart(t, found, object)
	}
}

func compareWithChart(t *testing.T, found map[string]*unstructured.Unstructured, object client.Object) {
	t.Helper()
	switch printed := object.(type) {
	case *rbacv1.ClusterRole:
		rendered := &rbacv1.ClusterRole{}
		decode(t, found["ClusterRole"], rendered)
		if rendered.Name != printed.Name || !slices.Equal(permissions(rendered.Rules), permissions(printed.Rules)) {
			t.Errorf("the ClusterRole of the chart allows\n%v\nthe printed one\n%v", permissions(rendered.Rules), permissions(printed.Rules))
		}
	case *appsv1.Deployment:
		rendered := &appsv1.Deployment{}
		decode(t, found["Deployment"], rendered)
		is, want := rendered.Spec.Template.Spec, printed.Spec.Template.Spec
		if is.Containers[0].Image != want.Containers[0].Image || !equality.Semantic.DeepEqual(is.Volumes, want.Volumes) ||
			!equality.Semantic.DeepEqual(is.SecurityContext, want.SecurityContext) || !equality.Semantic.DeepEqual(is.Containers[0].SecurityContext, want.Containers[0].SecurityContext) ||
			!equality.Semantic.DeepEqual(is.Containers[0].LivenessProbe, want.Containers[0].LivenessProbe) ||
			!equality.Semantic.DeepEqual(is.Containers[0].ReadinessProbe, want.Containers[0].ReadinessProbe) ||
			!equality.Semantic.DeepEqual(is.Containers[0].Resources, want.Containers[0].Resources) || is.ServiceAccountName != want.ServiceAccountName ||
			!slices.Equal(is.Containers[0].Args[:4], want.Containers[0].Args) {
			t.Errorf("the Deployment of the chart has\n%+v\nthe printed one\n%+v", is, want)
		}
	}
}

func TestTunnelChartUsesItsValues(t *testing.T) { //nolint:gocyclo // one comparison for each value
	found, err := tunnelObjects(t, "--set", "secret.name=other,image.digest=sha256:"+strings.Repeat("a", 64)+",metrics.enabled=true,replicaCount=2",
		"--set", "podLabels.team=edge,nodeSelector.zone=a,podAnnotations.note=x,imagePullSecrets[0].name=pull,global.imagePullSecrets[0].name=global",
		"--set-json", `rbac.resources=[{"group": "example.com", "resource": "widgets"}]`, "--set-json", "rbac.upOnly=[]",
		"--set-json", `extraEnv=[{"name": "HTTPS_PROXY", "value": "http://proxy"}]`,
		"--set-json", `tolerations=[{"operator": "Exists"}]`, "--set-json", `affinity={"podAntiAffinity": {}}`,
		"--set", "priorityClassName=high,extraArgs[0]=--log-level=debug,commonLabels.of=edge,commonAnnotations.by=me,livenessProbe.periodSeconds=7,readinessProbe.periodSeconds=8",
		"--set", "podDisruptionBudget.enabled=true,podDisruptionBudget.maxUnavailable=2,serviceAccount.annotations.role=edge,podSecurityContext.runAsUser=7,containerSecurityContext.runAsUser=8",
		"--set", "metrics.podMonitor.enabled=true,metrics.podMonitor.interval=30s,metrics.podMonitor.scrapeTimeout=5s,metrics.podMonitor.labels.prometheus=x",
		"--set-json", `metrics.podMonitor.relabelings=[{"action": "drop"}]`, "--set-json", `metrics.podMonitor.metricRelabelings=[{"action": "keep"}]`,
		"--set-json", `topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}]`)
	if err != nil {
		t.Fatal(err)
	}
	deployment, role := &appsv1.Deployment{}, &rbacv1.ClusterRole{}
	decode(t, found["Deployment"], deployment)
	decode(t, found["ClusterRole"], role)
	pod := deployment.Spec.Template
	if *deployment.Spec.Replicas != 2 || !strings.HasPrefix(pod.Spec.Containers[0].Image, "ghcr.io/synchub-dev/synchub-tunnel@sha256:") ||
		pod.Spec.Volumes[0].Secret.SecretName != "other" || !slices.Contains(pod.Spec.Containers[0].Args, "--metrics-bind-address=:8080") ||
		pod.Labels["team"] != "edge" || pod.Annotations["note"] != "x" || pod.Spec.NodeSelector["zone"] != "a" || len(pod.Spec.Tolerations) != 1 ||
		pod.Spec.Affinity == nil || !slices.Equal(pod.Spec.ImagePullSecrets, []corev1.LocalObjectReference{{Name: "global"}, {Name: "pull"}}) {
		t.Errorf("got %+v", deployment.Spec)
	}
	if env := []corev1.EnvVar{{Name: "HTTPS_PROXY", Value: "http://proxy"}}; !slices.Equal(pod.Spec.Containers[0].Env, env) {
		t.Errorf("got %+v", pod.Spec.Containers[0].Env)
	}
	if pod.Spec.PriorityClassName != "high" || !slices.Contains(pod.Spec.Containers[0].Args, "--log-level=debug") || pod.Spec.Containers[0].LivenessProbe.PeriodSeconds != 7 ||
		pod.Spec.Containers[0].ReadinessProbe.PeriodSeconds != 8 || *pod.Spec.SecurityContext.RunAsUser != 7 || *pod.Spec.Containers[0].SecurityContext.RunAsUser != 8 ||
		pod.Spec.TopologySpreadConstraints[0].LabelSelector.MatchLabels["app.kubernetes.io/instance"] != "synchub-tunnel" {
		t.Errorf("got %+v", pod.Spec)
	}
	for kind, object := range found {
		if object.GetLabels()["of"] != "edge" || object.GetAnnotations()["by"] != "me" {
			t.Errorf("the %s has the labels %v and annotations %v", kind, object.GetLabels(), object.GetAnnotations())
		}
	}
	budget, monitor := found["PodDisruptionBudget"], found["PodMonitor"]
	if budget == nil || monitor == nil {
		t.Fatalf("there are only %v", slices.Sorted(maps.Keys(found)))
	}
	if most, _, _ := unstructured.NestedInt64(budget.Object, "spec", "maxUnavailable"); most != 2 || found["ServiceAccount"].GetAnnotations()["role"] != "edge" {
		t.Errorf("got %v, %v", budget.Object, found["ServiceAccount"].Object)
	}
	endpoints, _, _ := unstructured.NestedSlice(monitor.Object, "spec", "podMetricsEndpoints")
	want := []any{map[string]any{"port": "metrics", "interval": "30s", "scrapeTimeout": "5s", "relabelings": []any{map[string]any{"action": "drop"}}, "metricRelabelings": []any{map[string]any{"action": "keep"}}}}
	if !equality.Semantic.DeepEqual(endpoints, want) || monitor.GetLabels()["prometheus"] != "x" {
		t.Errorf("got %v", monitor.Object)
	}
	allowed := permissions(role.Rules)
	if !slices.Contains(allowed, "patch example.com/widgets ") || slices.Contains(allowed, "get /secrets ") {
		t.Errorf("got %v", allowed)
	}
}

// Two releases in a namespace have different names, also in the cluster.
func TestTwoTunnelReleasesDoNotCollide(t *testing.T) {
	names := map[string]bool{}
	for _, name := range []string{"", "fullnameOverride=other", "nameOverride=more"} {
		found, err := tunnelObjects(t, "--set", name)
		if err != nil {
			t.Fatal(err)
		}
		for kind, object := range found {
			if names[kind+object.GetName()] {
				t.Errorf("with %q there is another %s %s", name, kind, object.GetName())
			}
			names[kind+object.GetName()] = true
		}
	}
}

func TestTunnelChartRefusesUnknownValues(t *testing.T) {
	for _, set := range []string{"secrets.name=x", "hub.url=http://hub", "image.pullPolicy=Sometimes", "replicaCount=9", "log.level=loud", "extraEnv[0].value=x"} {
		if _, err := tunnelObjects(t, "--set", set); err == nil {
			t.Errorf("%s was accepted", set)
		}
	}
}

// Each value has a comment of its own, and is in the schema.
func TestTunnelValuesAreDescribed(t *testing.T) {
	_, _, root := paths(t)
	directory := filepath.Join(root, "charts", "synchub-tunnel")
	content, err := os.ReadFile(filepath.Join(directory, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	schema := fixtures.DecodeFile[map[string]any](t, filepath.Join(directory, "values.schema.json"))
	properties, _ := schema["properties"].(map[string]any)
	values := map[string]any{}
	if err := yaml.Unmarshal(content, &values); err != nil {
		t.Fatal(err)
	}
	for name := range values {
		if properties[name] == nil {
			t.Errorf("the schema lacks %s", name)
		}
	}
	// What Kubernetes defines has no comment of its own.
	plain := map[string]bool{}
	for _, name := range []string{"requests", "limits", "runAsNonRoot", "seccompProfile", "allowPrivilegeEscalation", "readOnlyRootFilesystem", "capabilities"} {
		plain[name] = true
	}
	before := ""
	for line := range strings.SplitSeq(string(content), "\n") {
		text := strings.TrimSpace(line)
		key, value, isKey := strings.Cut(text, ":")
		isGroup := isKey && strings.TrimSpace(value) == ""
		if isKey && !isGroup && !strings.HasPrefix(text, "#") && !strings.HasPrefix(text, "-") && !plain[key] && !strings.HasPrefix(before, "#") {
			t.Errorf("%s has no comment", key)
		}
		before = text
	}
}
