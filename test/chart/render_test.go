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
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/synchub-dev/synchub/test/fixtures"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/chart"
)

const (
	namespace     = "hub"
	kubeVersion   = "v1.35.4"
	requiredValue = "kcp.kubeconfigSecret.name"
	required      = requiredValue + "=synchub-kcp"
)

// defaults are the PublishedResources of the chart.
var defaults = []string{
	"clusterrolebindings", "clusterroles", "configmaps", "cronjobs", "customresourcedefinitions", "daemonsets", "deployments", "ingresses",
	"jobs", "namespaces", "pods", "rolebindings", "roles", "secrets", "serviceaccounts", "services", "statefulsets",
}

// withSchemas are the defaults that kcp does not serve, so that the chart contains a schema.
var withSchemas = []string{"cronjobs", "daemonsets", "deployments", "ingresses", "jobs", "pods", "services", "statefulsets"}

// schemaOf returns the name of the ConfigMap with the schema.
func schemaOf(name string) string { return "synchub-schema-" + name }

// paths returns the helm program, the directory of the chart, and the root of the repository.
func paths(t *testing.T) (helm chart.Helm, chartDir, root string) {
	t.Helper()
	root, err := framework.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	helm.Path = filepath.Join(root, "bin", "helm")
	if _, err := os.Stat(helm.Path); err != nil {
		t.Fatalf("helm is not built, run `make tools`: %v", err)
	}
	return helm, filepath.Join(root, "charts", "synchub"), root
}

// template renders the chart for a cluster without the kind PublishedResource, unless args contain --api-versions.
func template(t *testing.T, args ...string) (string, error) {
	t.Helper()
	helm, chartDir, _ := paths(t)
	return helm.Run(t.Context(), append([]string{
		"template", chart.Release, chartDir, "--namespace", namespace, "--kube-version", kubeVersion,
	}, args...)...)
}

// objects returns the rendered objects by "<kind>/<name>".
func objects(t *testing.T, args ...string) map[string]*unstructured.Unstructured {
	t.Helper()
	rendered, err := template(t, append([]string{"--set", required}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]*unstructured.Unstructured{}
	for document := range strings.SplitSeq(rendered, "\n---\n") {
		object := fixtures.Object(t, document)
		if len(object.Object) == 0 {
			continue
		}
		key := object.GetKind() + "/" + object.GetName()
		if found[key] != nil {
			t.Errorf("%s was rendered twice", key)
		}
		found[key] = object
	}
	return found
}

func decode(t *testing.T, object *unstructured.Unstructured, into any) {
	t.Helper()
	if object == nil {
		t.Fatalf("the %T was not rendered", into)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, into, true); err != nil {
		t.Fatalf("%s %s has a field that its kind does not know: %v", object.GetKind(), object.GetName(), err)
	}
}

func TestLintIsClean(t *testing.T) {
	helm, chartDir, _ := paths(t)
	for _, args := range [][]string{{}, {"--values", "testdata/all-values.yaml"}} {
		if output, err := helm.Run(t.Context(), append([]string{"lint", "--strict", "--kube-version", kubeVersion, chartDir}, args...)...); err != nil {
			t.Errorf("lint %v: %v\n%s", args, err, output)
		}
	}
}

func TestDefaultsRenderExactlyTheseObjects(t *testing.T) {
	want := []string{
		"ClusterRole/synchub", "ClusterRoleBinding/synchub",
		"CustomResourceDefinition/publishedresources.synchub.dev", "Deployment/synchub", "Job/synchub-wait", "PodDisruptionBudget/synchub",
		"Role/synchub", "Role/synchub-events", "RoleBinding/synchub", "RoleBinding/synchub-events", "Service/synchub-metrics", "ServiceAccount/synchub", "ServiceAccount/synchub-wait",
	}
	for _, name := range defaults {
		want = append(want, "PublishedResource/"+name)
	}
	for _, name := range withSchemas {
		want = append(want, "ConfigMap/"+schemaOf(name))
	}
	slices.Sort(want)
	var got []string
	for key := range objects(t) {
		got = append(got, key)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("rendered\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// Each of two renderings has half of the defaults, so that each default is left out once, and stays once without its
// neighbours.
func TestEachDefaultCanBeLeftOut(t *testing.T) {
	all := objects(t)
	for half := range 2 {
		var without, want []string
		for i, name := range defaults {
			if i%2 == half {
				continue
			}
			without, want = append(without, name), append(want, "PublishedResource/"+name)
			if slices.Contains(withSchemas, name) {
				want = append(want, "ConfigMap/"+schemaOf(name))
			}
		}
		slices.Sort(want)
		rest := objects(t, "--set", "publishedResources.without={"+strings.Join(without, ",")+"}")
		missing := maps.Clone(all)
		maps.DeleteFunc(missing, func(key string, _ *unstructured.Unstructured) bool { return rest[key] != nil })
		if got := slices.Sorted(maps.Keys(missing)); !slices.Equal(got, want) {
			t.Errorf("left out\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
		}
	}
}

func TestPublishedResourcesAreHooksOnlyWhereTheKindIsUnknown(t *testing.T) {
	for _, test := range []struct {
		name string
		args []string
		hook string
		// policy avoids Helm's default, which would delete a PublishedResource before it creates the object again.
		policy string
	}{
		{name: "unknown", hook: "post-install,post-upgrade", policy: "hook-failed"},
		{name: "known", args: known},
	} {
		t.Run(test.name, func(t *testing.T) {
			rendered := objects(t, test.args...)
			if waits := rendered["Job/synchub-wait"] != nil; waits != (test.hook != "") {
				t.Errorf("a Job waits for the definition: %t", waits)
			}
			for _, key := range []string{"PublishedResource/configmaps", "PublishedResource/deployments", "ConfigMap/synchub-schema-deployments", "CustomResourceDefinition/publishedresources.synchub.dev"} {
				annotations := rendered[key].GetAnnotations()
				if annotations["helm.sh/resource-policy"] != "keep" || !strings.Contains(annotations["argocd.argoproj.io/sync-options"], "Prune=false") || annotations["kustomize.toolkit.fluxcd.io/prune"] != "disabled" {
					t.Errorf("%s goes with the release: %v", key, annotations)
				}
				if !strings.HasPrefix(key, "PublishedResource/") {
					continue
				}
				if hook, policy := annotations["helm.sh/hook"], annotations["helm.sh/hook-delete-policy"]; hook != test.hook || policy != test.policy {
					t.Errorf("%s has the hook %q with policy %q, want %q with %q", key, hook, policy, test.hook, test.policy)
				}
			}
		})
	}
}

// The Job that waits for the definition does not run as the hub, which may read Secrets.
func TestTheWaitingJobHasNoRights(t *testing.T) {
	rendered := objects(t)
	var job batchv1.Job
	decode(t, rendered["Job/synchub-wait"], &job)
	account := rendered["ServiceAccount/"+job.Spec.Template.Spec.ServiceAccountName]
	if account == nil || account.GetName() == "synchub" {
		t.Fatalf("it runs as %q", job.Spec.Template.Spec.ServiceAccountName)
	}
	// Helm creates hooks by their weight, and deletes these when all have succeeded.
	if got, want := account.GetAnnotations(), map[string]string{
		"helm.sh/hook": "post-install,post-upgrade", "helm.sh/hook-weight": "-2", "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded",
	}; !maps.Equal(got, want) || job.Annotations["helm.sh/hook-weight"] != "-1" {
		t.Errorf("the account has the annotations %v, the Job has %v", got, job.Annotations)
	}
	for key, object := range rendered {
		if subjects, _, _ := unstructured.NestedSlice(object.Object, "subjects"); strings.Contains(fmt.Sprint(subjects), "name:"+account.GetName()+" ") {
			t.Errorf("%s gives it rights", key)
		}
	}
	decode(t, objects(t, "--set", "serviceAccount.create=false,serviceAccount.name=theirs")["Job/synchub-wait"], &job)
	if got := job.Spec.Template.Spec.ServiceAccountName; got != "theirs" {
		t.Errorf("where the chart creates no accounts it runs as %q", got)
	}
}

// All Pods run as the Pod security standard "restricted" asks for, and no container can write into its root filesystem.
func TestSecurityContexts(t *testing.T) {
	seccomp, nobody := &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}, new(int64(65532))
	hubPod := corev1.PodSecurityContext{RunAsNonRoot: new(true), RunAsUser: nobody, RunAsGroup: nobody, FSGroup: nobody, SeccompProfile: seccomp}
	hubContainer := corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true), RunAsNonRoot: new(true), SeccompProfile: seccomp,
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	var hub appsv1.Deployment
	var wait batchv1.Job
	rendered := objects(t)
	decode(t, rendered["Deployment/synchub"], &hub)
	decode(t, rendered["Job/synchub-wait"], &wait)
	for name, test := range map[string]struct {
		pod           corev1.PodSpec
		wantPod       corev1.PodSecurityContext
		wantContainer corev1.SecurityContext
	}{
		"the hub": {hub.Spec.Template.Spec, hubPod, hubContainer},
		"the Job": {wait.Spec.Template.Spec, hubPod, hubContainer},
	} {
		if !equality.Semantic.DeepEqual(test.pod.SecurityContext, &test.wantPod) {
			t.Errorf("%s: the Pod has %+v", name, test.pod.SecurityContext)
		}
		for _, container := range append(test.pod.InitContainers, test.pod.Containers...) {
			if !equality.Semantic.DeepEqual(container.SecurityContext, &test.wantContainer) {
				t.Errorf("%s: the container %s has %+v", name, container.Name, container.SecurityContext)
			}
		}
	}
}

// A kubeconfig must not reach the ports of the hub's own Pod.
func TestLoopbackIsDenied(t *testing.T) {
	rendered, err := template(t, "--set", required)
	if err != nil {
		t.Fatal(err)
	}
	if want := "--denied-networks=127.0.0.0/8,::1/128"; !strings.Contains(rendered, want) {
		t.Errorf("nothing was rendered with %q", want)
	}
}

func TestAllValuesAreUsed(t *testing.T) {
	rendered, err := template(t, "--values", "testdata/all-values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"name: hub-of-ours", "image: \"images.example.org/synchub@sha256:", "imagePullPolicy: Always", "name: pull-secret",
		"secretName: kcp-credentials", "--kcp-kubeconfig=/etc/synchub/kcp/hub.kubeconfig", "--provider-workspace=root:org:hub",
		"--coordination=sharded", "kind: HorizontalPodAutoscaler", "minReplicas: 4", "maxReplicas: 9", "averageUtilization: 71",
		"--standby=warm", "--leader-election-lease-duration=31s", "--leader-election-renew-deadline=21s", "--leader-election-retry-period=1500ms",
		"--kcp-qps=101", "--kcp-burst=102", "--target-qps=103", "--target-burst=104", "--mailbox-max-objects=105", "--mailbox-max-bytes=106", "--mailboxes-max-bytes=107", "--inventory-max-mailboxes=109", "--max-placed-objects=110", "--withdrawal-grace=112s", "--targets-max-bytes=108", "--denied-networks=10.96.0.0/12,fd12::/16", "--protected-namespaces=kube-*,mine", "--log-level=debug", "--log-format=console",
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
		"name: more-of-it", "name: 'hub-of-ours-more'",
	} {
		if !strings.Contains(rendered, want) {
			t.Errorf("nothing was rendered with %q", want)
		}
	}
	if strings.Contains(rendered, "kind: CustomResourceDefinition") {
		t.Error("the definition was rendered though it was turned off")
	}
	if strings.Contains(rendered, "name: synchub-schema-deployments") {
		t.Error("PublishedResources were rendered though they were turned off")
	}
	_, chartDir, _ := paths(t)
	values, defaults := fixtures.DecodeFile[map[string]any](t, "testdata/all-values.yaml"), fixtures.DecodeFile[map[string]any](t, filepath.Join(chartDir, "values.yaml"))
	for _, key := range missing("", defaults, values) {
		t.Errorf("testdata/all-values.yaml does not set %s", key)
	}
}

// An autoscaler sets the number of hubs, which the Deployment must not set then.
func TestReplicas(t *testing.T) {
	for name, test := range map[string]struct {
		set             string
		contains, lacks []string
	}{
		"by default":  {contains: []string{"\n  replicas: 2\n", "--coordination=leader\n", "--standby=warm\n"}, lacks: []string{"kind: HorizontalPodAutoscaler"}},
		"cold":        {set: "replicaCount=3,leaderElection.standby=cold", contains: []string{"\n  replicas: 3\n", "--standby=cold\n"}},
		"sharded":     {set: "replicaCount=5,coordination=sharded", contains: []string{"\n  replicas: 5\n", "--coordination=sharded\n"}, lacks: []string{"kind: HorizontalPodAutoscaler"}},
		"autoscaling": {set: "replicaCount=5,coordination=sharded,autoscaling.enabled=true", contains: []string{"kind: HorizontalPodAutoscaler", "\n  minReplicas: 2\n  maxReplicas: 8\n"}, lacks: []string{"\n  replicas:"}},
	} {
		t.Run(name, func(t *testing.T) {
			rendered, err := template(t, "--set", required, "--set", test.set)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range test.contains {
				if !strings.Contains(rendered, want) {
					t.Errorf("nothing was rendered with %q", want)
				}
			}
			for _, unwanted := range test.lacks {
				if strings.Contains(rendered, unwanted) {
					t.Errorf("it was rendered with %q", unwanted)
				}
			}
		})
	}
}

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
