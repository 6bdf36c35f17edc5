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

package patchguard_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/synchub-dev/synchub/provider/patchguard"
	"github.com/synchub-dev/synchub/provider/schemas"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/suite"
	"github.com/synchub-dev/synchub/test/tier"
)

func TestMain(m *testing.M) { suite.Main(m) }

// workspace returns the client config for a workspace that binds the APIs of a guarded provider workspace.
var workspace = suite.Shared(func(t testing.TB) *rest.Config {
	t.Helper()
	g, kcp := NewWithT(t), suite.KCP(t)
	for _, name := range []string{"guard-provider", "guard-team"} {
		_, err := framework.CreateWorkspace(t.Context(), kcp.Config, "root", name, "universal")
		g.Expect(err).NotTo(HaveOccurred())
	}
	provider, team := kcp.Workspace("root:guard-provider"), kcp.Workspace("root:guard-team")
	var resources []any
	for _, published := range publishedSchemas(t) {
		create(t, provider, published)
		resources = append(resources, map[string]any{"group": published.Spec.Group, "name": published.Spec.Names.Plural, "schema": published.Name, "storage": map[string]any{"crd": map[string]any{}}})
	}
	create(t, provider, map[string]any{"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport", "metadata": map[string]any{"name": "apis"}, "spec": map[string]any{"resources": resources}})
	policy, binding := patchguard.Policy(), patchguard.Binding()
	policy.TypeMeta = metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingAdmissionPolicy"}
	binding.TypeMeta = metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingAdmissionPolicyBinding"}
	create(t, provider, policy)
	create(t, provider, binding)
	create(t, team, map[string]any{"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": map[string]any{"name": "apis"},
		"spec": map[string]any{"reference": map[string]any{"export": map[string]any{"path": "root:guard-provider", "name": "apis"}}}})
	// kcp makes a CRD of each schema, one after the other.
	g.Eventually(framework.Condition).WithContext(t.Context()).WithTimeout(2*time.Minute).WithArguments(team, schema.GroupVersionResource{Group: "apis.kcp.io", Version: "v1alpha2", Resource: "apibindings"}, "", "apis", "Ready").Should(Equal("True"))
	// kcp compiles the policy when the first object of a workspace is created, and refuses other objects until it has
	// finished.
	probe := map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "probe", "namespace": "default"}, "spec": map[string]any{}}
	create(t, team, probe)
	return team
})

// servedByKCP are the groups, and the resources of the core group, with schemas in the hub of what kcp serves itself. Mailboxes have
// twins of them.
var servedByKCP = []string{"rbac.authorization.k8s.io", "admissionregistration.k8s.io", "resourcequotas"}

// publishedSchemas returns the schemas of the hub that workspaces have.
func publishedSchemas(t testing.TB) (all []*apisv1alpha1.APIResourceSchema) {
	t.Helper()
	g := NewWithT(t)
	root, err := framework.RepositoryRoot()
	g.Expect(err).NotTo(HaveOccurred())
	files, err := filepath.Glob(filepath.Join(root, "provider/schemas/builtin/*.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).NotTo(BeEmpty())
	for _, file := range files {
		content, err := os.ReadFile(file) //nolint:gosec // a file of the repository
		g.Expect(err).NotTo(HaveOccurred())
		var crd apiextensionsv1.CustomResourceDefinition
		g.Expect(yaml.Unmarshal(content, &crd)).To(Succeed())
		if slices.Contains(servedByKCP, cmp.Or(crd.Spec.Group, crd.Spec.Names.Plural)) {
			continue
		}
		converted, err := schemas.FromCRD(&crd)
		g.Expect(err).NotTo(HaveOccurred())
		all = append(all, converted)
	}
	return all
}

func create(t testing.TB, config *rest.Config, object any) {
	t.Helper()
	manifest, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	NewWithT(t).Eventually(framework.Apply).WithContext(t.Context()).WithArguments(config, string(manifest)).Should(Succeed())
}

const twoContainers = `{containers: [
  {name: main, image: "example.org/main:1", env: [{name: A, value: "1"}, {name: B, value: "2"}], ports: [{containerPort: 80}, {containerPort: 81}], resources: {limits: {cpu: 1, memory: 1Gi}}},
  {name: sidecar, image: "example.org/sidecar:1"}],
  volumes: [{name: v, configMap: {name: c, items: [{key: a, path: a}]}}, {name: w, emptyDir: {}}]}`

const minimal = `{containers: [{name: main, image: "example.org/main:1"}, {name: sidecar, image: "example.org/sidecar:1"}]}`

// change is an update of an object by a client.
type change struct {
	manager string
	kind    types.PatchType // an update (PUT) if empty
	patch   string
	// refusal is part of the message of a refusal.
	refusal string
}

const strategic, merge, jsonPatch, apply = types.StrategicMergePatchType, types.MergePatchType, types.JSONPatchType, types.ApplyPatchType

// containers is a patch of the containers of a Deployment.
func containers(list string) string { return spec(`containers: ` + list) }
func spec(fields string) string     { return `{spec: {template: {spec: {` + fields + `}}}}` }

// Each kind of change by each kind of client has its effect, or is refused and changes nothing.
func TestGuard(t *testing.T) {
	tier.Thorough(t)
	const lists, cannot = "kcp would lose fields or items of", "cannot delete or order items"
	for name, test := range map[string]struct {
		pod string
		change
	}{
		"set image":                                      {twoContainers, change{"kubectl-set", strategic, containers(`[{name: main, image: "example.org/main:2"}]`), lists + " containers"}},
		"set image of a minimal container":               {minimal, change{"kubectl-set", strategic, containers(`[{name: main, image: "example.org/main:2"}]`), lists}},
		"set image of all minimal containers":            {minimal, change{"kubectl-set", strategic, containers(`[{name: main, image: "a"}, {name: sidecar, image: "b"}]`), ""}},
		"set image of a container with empty fields":     {`{containers: [{name: main, image: a, resources: {}, env: []}]}`, change{"kubectl-set", strategic, containers(`[{name: main, image: b}]`), ""}},
		"an edited volume":                               {twoContainers, change{"kubectl-edit", strategic, spec(`volumes: [{name: v, configMap: {name: d}}]`), lists + " volumes"}},
		"an edited field of a map":                       {twoContainers, change{"kubectl-edit", strategic, spec(`volumes: [{name: v, configMap: {name: d}}, {name: w, emptyDir: {}}]`), lists + " volumes"}},
		"an edited field that is no list":                {twoContainers, change{"kubectl-edit", strategic, spec(`nodeSelector: {a: b}`), ""}},
		"a removed list":                                 {twoContainers, change{"kubectl-edit", strategic, spec(`volumes: null`), ""}},
		"a removed item":                                 {twoContainers, change{"helm", strategic, containers(`[{"$patch": delete, name: sidecar}]`), lists}},
		"a directive by any client":                      {`{containers: [{name: main, image: a}]}`, change{"anybody", strategic, containers(`[{name: main, image: b, "$setElementOrder/env": [{name: A}]}]`), cannot}},
		"no image by any client":                         {twoContainers, change{"anybody", strategic, containers(`[{name: main, env: [{name: A, value: "2"}]}]`), "lose its image"}},
		"restart":                                        {twoContainers, change{"kubectl-rollout", strategic, `{spec: {template: {metadata: {annotations: {a: b}}}}}`, ""}},
		"labels":                                         {twoContainers, change{"kubectl-label", merge, `{metadata: {labels: {a: b}}}`, ""}},
		"a strategic patch by hand":                      {twoContainers, change{"kubectl-patch", strategic, containers(`[{name: main, image: b}]`), "--type=json"}},
		"a strategic patch by hand that changes nothing": {twoContainers, change{"kubectl-patch", strategic, containers(`[{name: main, image: "example.org/main:1"}]`), "--type=json"}},
		"a JSON patch of an image":                       {twoContainers, change{"kubectl-patch", jsonPatch, `[{op: replace, path: /spec/template/spec/containers/0/image, value: b}]`, ""}},
		"a JSON patch that removes a container":          {twoContainers, change{"kubectl-patch", jsonPatch, `[{op: remove, path: /spec/template/spec/containers/1}]`, ""}},
		"a JSON patch that removes a field":              {twoContainers, change{"kubectl-patch", jsonPatch, `[{op: remove, path: /spec/template/spec/containers/0/env}]`, ""}},
		"a JSON patch that removes a nested item":        {twoContainers, change{"kubectl-patch", jsonPatch, `[{op: remove, path: /spec/template/spec/containers/0/env/0}]`, ""}},
		"a JSON patch that removes a limit":              {twoContainers, change{"kubectl-patch", jsonPatch, `[{op: remove, path: /spec/template/spec/containers/0/resources/limits/cpu}]`, ""}},
		"a JSON patch that removes limits":               {twoContainers, change{"kubectl-patch", jsonPatch, `[{op: remove, path: /spec/template/spec/containers/0/resources/limits}]`, ""}},
		"a JSON patch that adds":                         {twoContainers, change{"kubectl-patch", jsonPatch, `[{op: add, path: /spec/template/spec/containers/0/env/-, value: {name: C, value: c}}]`, ""}},
		"a merge patch of all containers":                {minimal, change{"kubectl-patch", merge, containers(`[{name: main, image: b}, {name: sidecar, image: c}]`), ""}},
		"a merge patch with a field manager":             {twoContainers, change{"remover", merge, containers(`[{name: main, image: b}]`), ""}},
		"a merge patch of replicas":                      {twoContainers, change{"kubectl-patch", merge, `{spec: {replicas: 3}}`, ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			deployments := newDynamic(t).Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}).Namespace("default")
			objectName := strings.ReplaceAll(strings.ToLower(name), " ", "-")
			manifest := fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: %q}, spec: {replicas: 1, selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: %s}}}`, objectName, test.pod)
			before, err := deployments.Create(t.Context(), parse(t, manifest), metav1.CreateOptions{FieldManager: "kubectl-create"})
			g.Expect(err).NotTo(HaveOccurred())
			patch, err := yaml.YAMLToJSON([]byte(test.patch))
			g.Expect(err).NotTo(HaveOccurred())
			after, err := deployments.Patch(t.Context(), objectName, test.kind, patch, metav1.PatchOptions{FieldManager: test.manager})
			if test.refusal == "" {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(after.GetGeneration() + int64(len(after.GetLabels()))).To(Equal(before.GetGeneration() + 1))
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(test.refusal)))
			t.Log(err)
			now, err := deployments.Get(t.Context(), objectName, metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(now).To(Equal(before))
		})
	}
}

// Other kinds have their lists elsewhere, and what a server-side apply or an update takes away was meant.
func TestGuardOfOtherKinds(t *testing.T) {
	tier.Thorough(t)
	const lists = "kcp would lose fields or items of"
	job := func(image string) string {
		return `{template: {spec: {restartPolicy: Never, containers: [{name: main, image: ` + image + `, env: [{name: A, value: a}]}]}}}`
	}
	for name, test := range map[string]struct {
		resource, kind, before string
		changes                []change
	}{
		"service": {"v1/services", "Service", `{ports: [{name: a, port: 80}, {name: b, port: 81}]}`, []change{
			{"kubectl-client-side-apply", strategic, `{spec: {ports: [{port: 80, targetPort: 8080}]}}`, lists + " ports"},
			{"kubectl-patch", strategic, `{spec: {ports: [{port: 80, targetPort: 8080}]}}`, lists},
			{"helm", "", `{spec: {ports: [{name: a, port: 80}, {name: b, port: 81}, {name: c, port: 82}]}}`, ""},
			{"kubectl-edit", strategic, `{spec: {type: NodePort}}`, ""},
			{"kubectl-replace", "", `{spec: {ports: [{port: 82}]}}`, ""},
		}},
		"cronjob": {"batch/v1/cronjobs", "CronJob", `{schedule: "* * * * *", jobTemplate: {spec: ` + job("a") + `}}`, []change{
			{"kubectl-set", strategic, `{spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: main, image: b}]}}}}}}`, lists},
			{"kubectl-edit", strategic, `{spec: {suspend: true}}`, ""},
		}},
		"pod": {"v1/pods", "Pod", `{containers: [{name: main, image: a, env: [{name: A, value: a}]}]}`, []change{
			{"kubectl-set", strategic, `{spec: {containers: [{name: main, image: b}]}}`, lists},
			{"kubectl-patch", jsonPatch, `[{op: replace, path: /spec/containers/0/image, value: b}]`, ""},
		}},
		"statefulset": {"apps/v1/statefulsets", "StatefulSet", `{selector: {matchLabels: {a: b}}, serviceName: a, ` + job("a")[1:], []change{
			{"argocd-controller", strategic, `{spec: {template: {spec: {containers: [{name: main, image: b}]}}}}`, "ServerSideApply=true"},
			{"kubectl-edit", strategic, `{spec: {template: {spec: {containers: [{name: main, image: b, env: [{name: B, value: a}]}]}}}}`, lists},
		}},
		"applied": {"apps/v1/daemonsets", "DaemonSet", `{selector: {matchLabels: {a: b}}, ` + job("a")[1:], []change{
			{"helm", apply, `{spec: {selector: {matchLabels: {a: b}}, template: {spec: {containers: [{name: main, image: c, ports: [{containerPort: 80}]}, {name: second, image: b}]}}}}`, ""},
			{"helm", apply, `{spec: {selector: {matchLabels: {a: b}}, template: {spec: {containers: [{name: main, image: c}]}}}}`, ""},
			{"helm", strategic, `{spec: {template: {spec: {containers: [{name: main, image: d}]}}}}`, lists},
			{"helm", apply, `{spec: {selector: {matchLabels: {a: b}}, template: {spec: {containers: [{name: main, image: d}]}}}}`, ""},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			slash := strings.LastIndex(test.resource, "/")
			version, err := schema.ParseGroupVersion(test.resource[:slash])
			g.Expect(err).NotTo(HaveOccurred())
			objects := newDynamic(t).Resource(version.WithResource(test.resource[slash+1:])).Namespace("default")
			manifest := parse(t, fmt.Sprintf(`{apiVersion: %s, kind: %s, metadata: {name: %s}, spec: %s}`, version, test.kind, name, test.before))
			_, err = objects.Create(t.Context(), manifest, metav1.CreateOptions{FieldManager: "kubectl-create"})
			g.Expect(err).NotTo(HaveOccurred())
			for _, change := range test.changes {
				err := change.by(t, objects, manifest)
				if change.refusal == "" {
					g.Expect(err).NotTo(HaveOccurred(), change.patch)
				} else {
					g.Expect(err).To(MatchError(ContainSubstring(change.refusal)), change.patch)
				}
			}
		})
	}
}

// by makes the change of an object.
func (c change) by(t *testing.T, objects dynamic.ResourceInterface, object *unstructured.Unstructured) error {
	t.Helper()
	if c.kind == strategic || c.kind == merge || c.kind == jsonPatch {
		patch, err := yaml.YAMLToJSON([]byte(c.patch))
		if err == nil {
			_, err = objects.Patch(t.Context(), object.GetName(), c.kind, patch, metav1.PatchOptions{FieldManager: c.manager})
		}
		return err
	}
	fields := parse(t, c.patch)
	if c.kind == apply {
		fields.SetGroupVersionKind(object.GroupVersionKind())
		fields.SetName(object.GetName())
		_, err := objects.Apply(t.Context(), object.GetName(), fields, metav1.ApplyOptions{FieldManager: c.manager, Force: true})
		return err
	}
	current, err := objects.Get(t.Context(), object.GetName(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	current.Object["spec"] = fields.Object["spec"]
	_, err = objects.Update(t.Context(), current, metav1.UpdateOptions{FieldManager: c.manager})
	return err
}
func newDynamic(t *testing.T) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(workspace(t))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func parse(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}
