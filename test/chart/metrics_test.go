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
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestSecureMetrics(t *testing.T) {
	const credentials = "metrics.secure.authorization.credentials.name=x,metrics.secure.authorization.credentials.key=y"
	authorization := map[string]any{"credentials": map[string]any{"name": "x", "key": "y"}}
	const file = "/var/run/secrets/kubernetes.io/serviceaccount/token"
	for _, test := range []struct {
		name, set string
		args      []string
		mounted   bool
		// endpoints are the monitors, by kind.
		endpoints map[string]map[string]any
	}{
		{
			name: "off", set: "metrics.secure.certSecret=unused,metrics.serviceMonitor.enabled=true,metrics.podMonitor.enabled=true",
			endpoints: map[string]map[string]any{"ServiceMonitor": {"port": "metrics"}, "PodMonitor": {"port": "metrics"}},
		},
		{
			name: "self-signed", set: "metrics.secure.enabled=true,metrics.serviceMonitor.enabled=true", args: []string{"--metrics-secure"},
			endpoints: map[string]map[string]any{"ServiceMonitor": {"port": "metrics", "scheme": "https", "bearerTokenFile": file, "tlsConfig": map[string]any{"insecureSkipVerify": true}}},
		},
		{
			name: "self-signed, with a token", set: "metrics.secure.enabled=true,metrics.serviceMonitor.enabled=true,metrics.podMonitor.enabled=true," + credentials, args: []string{"--metrics-secure"},
			endpoints: map[string]map[string]any{
				"ServiceMonitor": {"port": "metrics", "scheme": "https", "authorization": authorization, "tlsConfig": map[string]any{"insecureSkipVerify": true}},
				"PodMonitor":     {"port": "metrics", "scheme": "https", "authorization": authorization, "tlsConfig": map[string]any{"insecureSkipVerify": true}},
			},
		},
		{
			name: "a certificate", set: "metrics.secure.enabled=true,metrics.secure.certSecret=certificate,metrics.serviceMonitor.enabled=true",
			args: []string{"--metrics-secure", "--metrics-cert-dir=/etc/synchub/metrics"}, mounted: true,
			endpoints: map[string]map[string]any{"ServiceMonitor": {"port": "metrics", "scheme": "https", "bearerTokenFile": file, "tlsConfig": map[string]any{"serverName": "synchub-metrics." + namespace + ".svc"}}},
		},
		{
			name: "a certificate and its authority", set: "metrics.secure.enabled=true,metrics.secure.certSecret=certificate,metrics.secure.tlsConfig.serverName=other,metrics.serviceMonitor.enabled=true",
			args: []string{"--metrics-secure", "--metrics-cert-dir=/etc/synchub/metrics"}, mounted: true,
			endpoints: map[string]map[string]any{"ServiceMonitor": {"port": "metrics", "scheme": "https", "bearerTokenFile": file, "tlsConfig": map[string]any{"serverName": "other"}}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			rendered := objects(t, "--set", test.set)
			checkMetricsFlags(t, rendered, test.args, test.mounted)
			checkMetricsRoles(t, rendered, len(test.args) > 0)
			for kind, field := range map[string]string{"ServiceMonitor": "endpoints", "PodMonitor": "podMetricsEndpoints"} {
				checkEndpoint(t, rendered[kind+"/synchub"], field, test.endpoints[kind])
			}
		})
	}
}

// checkMetricsFlags checks the flags of the hub for secure metrics, and whether the certificate is mounted.
func checkMetricsFlags(t *testing.T, rendered map[string]*unstructured.Unstructured, want []string, wantMounted bool) {
	t.Helper()
	deployment := &appsv1.Deployment{}
	decode(t, rendered["Deployment/synchub"], deployment)
	pod := deployment.Spec.Template.Spec
	args := slices.DeleteFunc(slices.Clone(pod.Containers[0].Args), func(arg string) bool {
		return !strings.HasPrefix(arg, "--metrics-") || strings.HasPrefix(arg, "--metrics-bind-address")
	})
	if !slices.Equal(args, want) {
		t.Errorf("the flags are %q, want %q", args, want)
	}
	mounted := slices.Contains(pod.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "metrics-certificate", MountPath: "/etc/synchub/metrics", ReadOnly: true})
	volume := slices.ContainsFunc(pod.Volumes, func(volume corev1.Volume) bool {
		return volume.Name == "metrics-certificate" && volume.Secret.SecretName == "certificate"
	})
	if mounted != wantMounted || volume != wantMounted {
		t.Errorf("mounted: %t, volume: %t, want %t", mounted, volume, wantMounted)
	}
}

// checkMetricsRoles checks the rights of the hub and of the readers of its metrics.
func checkMetricsRoles(t *testing.T, rendered map[string]*unstructured.Unstructured, secure bool) {
	t.Helper()
	hub, reader := &rbacv1.ClusterRole{}, &rbacv1.ClusterRole{}
	decode(t, rendered["ClusterRole/synchub"], hub)
	if reviews := slices.ContainsFunc(hub.Rules, func(rule rbacv1.PolicyRule) bool { return strings.HasSuffix(rule.Resources[0], "reviews") }); reviews != secure {
		t.Errorf("the hub may review tokens and access: %t, want %t", reviews, secure)
	}
	found := rendered["ClusterRole/synchub-metrics-reader"]
	if !secure {
		if found != nil {
			t.Error("there is a role for readers")
		}
		return
	}
	decode(t, found, reader)
	if want := []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}; !equality.Semantic.DeepEqual(reader.Rules, want) {
		t.Errorf("readers may %v, want %v", reader.Rules, want)
	}
}

// checkEndpoint checks the only endpoint of a monitor. Without a wanted endpoint there must be no monitor.
func checkEndpoint(t *testing.T, monitor *unstructured.Unstructured, field string, want map[string]any) {
	t.Helper()
	if monitor == nil || want == nil {
		if monitor != nil || want != nil {
			t.Errorf("the monitor with %s is %v, want %v", field, monitor, want)
		}
		return
	}
	endpoints, _, err := unstructured.NestedSlice(monitor.Object, "spec", field)
	if err != nil {
		t.Fatal(err)
	}
	if !equality.Semantic.DeepEqual(endpoints, []any{want}) {
		t.Errorf("%s are %v, want %v", field, endpoints, want)
	}
}
