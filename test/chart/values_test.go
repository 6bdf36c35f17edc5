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
	"path/filepath"
	"strings"
	"testing"

	"github.com/synchub-dev/synchub/test/fixtures"
)

func TestAllValuesAreUsed(t *testing.T) {
	rendered, err := template(t, "--values", "testdata/all-values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"name: hub-of-ours", "image: \"mirror.example.org:5000/cache/ours/synchub@sha256:", "imagePullPolicy: Always", "name: pull-secret",
		"secretName: kcp-credentials", "--kcp-kubeconfig=/etc/synchub/kcp/hub.kubeconfig", "--provider-workspace=root:org:hub",
		"--coordination=sharded", "kind: HorizontalPodAutoscaler", "minReplicas: 4", "maxReplicas: 9", "averageUtilization: 71",
		"--standby=warm", "--leader-election-lease-duration=31s", "--leader-election-renew-deadline=21s", "--leader-election-retry-period=1500ms",
		"--kcp-qps=101", "--kcp-burst=102", "--target-qps=103", "--target-burst=104", "--mailbox-max-objects=105", "--mailbox-max-bytes=106", "--mailboxes-max-bytes=107", "--inventory-max-mailboxes=109", "--max-placed-objects=110", "--max-upsynced-objects=113", "--withdrawal-grace=112s", "--targets-max-bytes=108", "--denied-networks=10.96.0.0/12,fd12::/16", "--protected-namespaces=kube-*,mine", "--log-level=debug", "--log-format=console",
		"--tracing-endpoint=http://collector.example.org:4317", "--tracing-sampling-rate-per-million=111",
		"--more=yes", "serviceAccountName: hub-account", "example.org/account", "aggregate-to-view", "aggregate-to-admin",
		"--metrics-bind-address=:9080", "--metrics-per-resource=false", "--metrics-secure", "--metrics-cert-dir=/etc/synchub/metrics", "secretName: metrics-certificate", "name: hub-of-ours-metrics-reader", "serverName: metrics.example.org", "name: metrics-token", "example.org/scrape", "--health-probe-bind-address=:9081", "memory: 77Mi", "--memory-limit=$(MEMORY_LIMIT)", "resource: limits.memory", "maxUnavailable: 50%",
		"topologyKey: example.org/rack", "nodeAffinity:", "key: example.org/taint", "example.org/pool: hubs", "priorityClassName: important",
		"terminationGracePeriodSeconds: 61", "runAsUser: 1234", "example.org/team: hub", "example.org/note: hello",
		"name: global-pull-secret", "example.org/common: label", "example.org/common: note", "name: GOGC", "mountPath: /scratch", "emptyDir: {}", "ip: 192.0.2.7",
		"name: hub-of-ours-fleet-dashboard", "example.org/grafana: dashboards", "example.org/folder: hubs", `"uid": "synchub-target"`, "kind: PrometheusRule", "example.org/prometheus: rules", "alert: SynchubNoLeader", "kind: PodMonitor", "example.org/prometheus: pods", "interval: 31s", "scrapeTimeout: 11s", "kind: ServiceMonitor", "example.org/prometheus: services", "interval: 32s", "scrapeTimeout: 12s",
		"initialDelaySeconds: 62", "periodSeconds: 63", "timeoutSeconds: 64", "failureThreshold: 65", "periodSeconds: 66", "timeoutSeconds: 67",
		"--tunnel-bind-address=:9443", "--tunnel-url=https://tunnels.example.org:9443", "--tunnel-cert-dir=/etc/synchub/tunnel", "secretName: tunnel-certificate-of-ours",
		"type: NodePort", "example.org/balancer", "203.0.113.0/24", "kind: Ingress", "ingressClassName: passthrough", "example.org/passthrough", "host: tunnels.example.org",
		"kind: TLSRoute", "name: edge-of-ours", "hostnames: [tunnels.example.org]", "cidr: 198.51.100.0/24",
		"kind: NetworkPolicy", "example.org/metrics: readers", "cidr: 192.0.2.0/24", "type: Recreate", "revisionHistoryLimit: 3", "- NET_RAW", "type: Localhost", "example.org/note: deployed",
		"name: more-of-it", "name: 'hub-of-ours-more'", "runtimeClassName: gvisor", "dnsPolicy: None", "- 192.0.2.53", "enableServiceLinks: true", "name: before", "name: beside",
		"regex: pods", "regex: services", "honorLabels: true", "action: labeldrop",
	} {
		if !strings.Contains(rendered, want) {
			t.Errorf("nothing was rendered with %q", want)
		}
	}
	if strings.Contains(rendered, "namespace: default") {
		t.Error("an object was rendered in another namespace though that was turned off")
	}
	if strings.Contains(rendered, "kind: CustomResourceDefinition") {
		t.Error("the definition was rendered though it was turned off")
	}
	if strings.Contains(rendered, "kind: PublishedResource") {
		t.Error("PublishedResources were rendered though they were turned off")
	}
	_, chartDir, _ := paths(t)
	values, defaults := fixtures.DecodeFile[map[string]any](t, "testdata/all-values.yaml"), fixtures.DecodeFile[map[string]any](t, filepath.Join(chartDir, "values.yaml"))
	for _, key := range missing("", defaults, values) {
		t.Errorf("testdata/all-values.yaml does not set %s", key)
	}
}

// missing returns the keys of one tree of values that another does not have.
func missing(prefix string, all, some map[string]any) (keys []string) {
	for key, value := range all {
		other, ok := some[key]
		if !ok {
			keys = append(keys, prefix+key)
			continue
		}
		if below, ok := value.(map[string]any); ok {
			belowOther, _ := other.(map[string]any)
			keys = append(keys, missing(prefix+key+".", below, belowOther)...)
		}
	}
	return keys
}

func TestInvalidValuesAreRefused(t *testing.T) {
	for _, test := range []struct{ set, complaint string }{
		{"replicas=3", "additional properties 'replicas' not allowed"},
		{"kcp.kubeconfig=x", "additional properties 'kubeconfig' not allowed"},
		{"kcp.kubeconfigSecret.namespace=x", "additional properties 'namespace' not allowed"},
		{"image.pullPolicy=Sometimes", "/image/pullPolicy"},
		{"image.digest=sha256:abc", "/image/digest"},
		{"image.repository=", "/image/repository"},
		{"image.registry=https://images.example.org", "/image/registry"},
		{"global.imageRegistry=images.example.org/", "/global/imageRegistry"},
		{"replicaCount=-1", "/replicaCount"},
		{"replicaCount=two", "/replicaCount"},
		{"coordination=shared", "/coordination"},
		{"coordination=sharded,leaderElection.standby=cold", "coordination: sharded cannot be used with leaderElection.standby: cold"},
		{"autoscaling.enabled=true", "autoscaling needs coordination: sharded"},
		{"coordination=sharded,autoscaling.enabled=true,autoscaling.minReplicas=9", "autoscaling.minReplicas is more than autoscaling.maxReplicas"},
		{"coordination=sharded,autoscaling.enabled=true,resources.requests.memory=null", "autoscaling needs resources.requests.memory"},
		{"autoscaling.maxReplicas=65", "/autoscaling/maxReplicas"},
		{"leaderElection.standby=hot", "/leaderElection/standby"},
		{"leaderElection.retryPeriod=soon", "/leaderElection/retryPeriod"},
		{"kcp.kubeconfigSecret.name=Not_A_Name", "/kcp/kubeconfigSecret/name"},
		{"kcp.providerWorkspace=root::synchub", "/kcp/providerWorkspace"},
		{"kcp.qps=0", "/kcp/qps"},
		{"targets.burst=many", "/targets/burst"},
		{"targets.deniedNetworks={10.0.0.1}", "/targets/deniedNetworks/0"},
		{"targets.protectedNamespaces={*-system}", "/targets/protectedNamespaces/0"},
		{"log.level=loud", "/log/level"},
		{"log.format=xml", "/log/format"},
		{"extraArgs[0]=run", "/extraArgs/0"},
		{"publishedResources.defaults=maybe", "/publishedResources/defaults"},
		{"publishedResources.without[0]=pod", "/publishedResources/without/0"},
		{"rbac.cluster=true", "additional properties 'cluster' not allowed"},
		{"metrics.port=80", "/metrics/port"},
		{"health.port=70000", "/health/port"},
		{"metrics.secure=true", "/metrics/secure"},
		{"metrics.secure.certSecret=Not_A_Name", "/metrics/secure/certSecret"},
		{"metrics.secure.enabled=true,metrics.podMonitor.enabled=true", "metrics.podMonitor needs metrics.secure.authorization"},
		{"metrics.podMonitor.interval=often", "/metrics/podMonitor/interval"},
		{"metrics.serviceMonitor.enabled=true,metrics.service.enabled=false", "metrics.serviceMonitor scrapes the Service"},
		{"networkPolicy.ingress=true", "additional properties 'ingress' not allowed"},
		{"crds.keep=maybe", "/crds/keep"},
		{"commonLabels.a=true", "/commonLabels/a"},
		{"extraEnv[0].value=x", "/extraEnv/0"},
		{"podDisruptionBudget.maxUnavailable=some", "/podDisruptionBudget/maxUnavailable"},
		{"serviceAccount.create=false", "serviceAccount.name is required when serviceAccount.create is false"},
	} {
		t.Run(test.set, func(t *testing.T) {
			if _, err := template(t, "--set", required, "--set", test.set); err == nil || !strings.Contains(err.Error(), test.complaint) {
				t.Errorf("the complaint should contain %q, but is: %v", test.complaint, err)
			}
		})
	}
}

func TestMissingKubeconfigSecretIsExplained(t *testing.T) {
	_, err := template(t)
	if err == nil {
		t.Fatal("the chart was rendered without a kubeconfig for kcp")
	}
	for _, want := range []string{"needs a kubeconfig for kcp", "kubectl create secret generic", "--set kcp.kubeconfigSecret.name="} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the message does not contain %q: %v", want, err)
		}
	}
}
