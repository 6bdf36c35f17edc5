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

package registration

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/yaml"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/provider/rbac"
	"github.com/synchub-dev/synchub/test/fixtures"
)

func TestNamesTellIdentitiesApart(t *testing.T) {
	long := strings.Repeat("a", maxNameLength-1)
	seen := map[string]Identity{}
	for _, identity := range []Identity{
		{SyncTarget: "florin", Inventory: "one"}, {SyncTarget: "florin", Inventory: "two"}, {SyncTarget: "guilder", Inventory: "one"},
		{SyncTarget: long + ".b" + long, Inventory: "one"}, {SyncTarget: long + ".c", Inventory: "one"}, {SyncTarget: "one.florin"},
	} {
		name := identity.Name()
		if other, notOwned := seen[name]; notOwned {
			t.Errorf("%+v and %+v are both called %s", identity, other, name)
		}
		seen[name] = identity
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			t.Errorf("%s: %v", name, problems)
		}
		if again := identity.Name(); again != name {
			t.Errorf("%s is now called %s", name, again)
		}
	}
}

// A user who creates a SyncTarget before its registration gets no access to the cluster that the operator has not
// confirmed.
func TestConfirmationQuestions(t *testing.T) {
	for name, test := range map[string]struct {
		spec edgev2alpha1.SyncTargetSpec
		want []string
	}{
		"nothing": {edgev2alpha1.SyncTargetSpec{Namespaces: &edgev2alpha1.TargetNamespaces{Only: []string{"shop"}}, Unschedulable: true}, nil},
		"access": {edgev2alpha1.SyncTargetSpec{MailboxAccess: []edgev2alpha1.MailboxAccess{{ClusterRole: "view", Subjects: []rbacv1.Subject{{Kind: "User", Name: "eve"}, {Kind: "Group", Name: "all"}}}}},
			[]string{"give User eve the role view", "give Group all the role view"}},
		"protected namespaces": {edgev2alpha1.SyncTargetSpec{Namespaces: &edgev2alpha1.TargetNamespaces{AllowProtected: []string{"kube-system", "synchub-*"}}},
			[]string{"the protected namespaces kube-system, synchub-*"}},
		"adoption":         {edgev2alpha1.SyncTargetSpec{Adoption: edgev2alpha1.AdoptionAlways}, []string{"spec.adoption: Always"}},
		"a shared cluster": {edgev2alpha1.SyncTargetSpec{AllowSharedCluster: true}, []string{"although another SyncTarget"}},
	} {
		got := confirmationQuestions(&edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{Name: "100%"}, Spec: test.spec})
		if len(got) != len(test.want) {
			t.Errorf("%s: got %q", name, got)
			continue
		}
		for i, part := range test.want {
			if !strings.HasPrefix(got[i], "The SyncTarget 100% is there already, and would ") || !strings.Contains(got[i], part) {
				t.Errorf("%s: want %q in %q", name, part, got[i])
			}
		}
	}
}

// The default resources are those that the chart publishes.
func TestDefaultResourcesAreWhatTheChartPublishes(t *testing.T) {
	files, err := filepath.Glob("../../../charts/synchub/files/published/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var published []string
	for _, file := range files {
		content, err := os.ReadFile(file) //nolint:gosec // a file of the repository
		if err != nil {
			t.Fatal(err)
		}
		var resource synchubv1alpha1.PublishedResource
		if err := yaml.Unmarshal(content, &resource); err != nil {
			t.Fatal(err)
		}
		if resource.Kind == "PublishedResource" {
			published = append(published, rbac.Resource{Group: resource.Spec.Resource.Group, Resource: resource.Spec.Resource.Resource, Down: true}.GroupResource().String())
		}
	}
	resources, _, err := SelectResources(ResourceRequest{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var chosen []string
	for _, resource := range resources {
		chosen = append(chosen, resource.GroupResource().String())
	}
	slices.Sort(published)
	slices.Sort(chosen)
	// RBAC is published twice.
	published = slices.Compact(published)
	if !slices.Equal(chosen, published) {
		t.Errorf("the chart publishes\n%v\nand usual are\n%v", published, chosen)
	}
}

func TestSelectResources(t *testing.T) {
	parse := func(text string) []rbac.Resource {
		if text == "" {
			return nil
		}
		resources, err := rbac.ParseResources(strings.Split(text, ","))
		if err != nil {
			t.Fatal(err)
		}
		return resources
	}
	for name, test := range map[string]struct{ asked, more, published, granted, want, source string }{
		"asked for":                     {asked: "secrets", published: "services", granted: "configmaps", want: "secrets", source: "from --resources"},
		"asked for, and more":           {asked: "secrets", more: "services", granted: "configmaps", want: "secrets,services", source: "from --resources, and from --add-resources"},
		"published":                     {published: "services,pods:up", want: "services,pods:up", source: "from the PublishedResources of the hosting cluster"},
		"published, and granted before": {published: "services,pods:up", granted: "pods:up,jobs.batch", want: "services,pods:up,jobs.batch", source: "hosting cluster, and granted before"},
		"granted before":                {granted: "configmaps", want: "configmaps", source: "as granted before"},
		"granted before, and more":      {granted: "configmaps:up", more: "configmaps,widgets.example.com:crd", want: "configmaps,widgets.example.com:crd", source: "as granted before, and from --add-resources"},
		"usual":                         {want: strings.Join(defaultResources, ","), source: "which the chart publishes by default"},
		"usual, and more":               {more: "widgets.example.com:crd", want: strings.Join(defaultResources, ",") + ",widgets.example.com:crd", source: "by default, and from --add-resources"},
	} {
		t.Run(name, func(t *testing.T) {
			request := ResourceRequest{Resources: parse(test.asked), Additional: parse(test.more), Published: parse(test.published)}
			got, source, err := SelectResources(request, parse(test.granted))
			if err != nil || !reflect.DeepEqual(got, rbac.MergeResources(parse(test.want))) || !strings.Contains(source, test.source) {
				t.Errorf("want %s from %s\ngot  %v from %s, %v", test.want, test.source, got, source, err)
			}
		})
	}
}

func TestPublishedResources(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: "example.dev", Version: "v1"}})
	mapper.Add(schema.GroupVersionKind{Group: "example.dev", Version: "v1", Kind: "Widget"}, meta.RESTScopeNamespace)
	publish := func(name string, spec synchubv1alpha1.PublishedResourceSpec) synchubv1alpha1.PublishedResource {
		return synchubv1alpha1.PublishedResource{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	}
	resources, unresolved, err := PublishedResources([]synchubv1alpha1.PublishedResource{
		publish("pods", synchubv1alpha1.PublishedResourceSpec{Resource: synchubv1alpha1.ResourceDescriptor{Resource: "pods"}}),
		publish("widgets", synchubv1alpha1.PublishedResourceSpec{
			Resource: synchubv1alpha1.ResourceDescriptor{Group: "example.dev", Kind: "Widget"}, InstallCRD: true,
			Related: []synchubv1alpha1.RelatedResource{
				{Origin: synchubv1alpha1.RelatedOriginMailbox, Resource: synchubv1alpha1.RelatedResourceDescriptor{Resource: "secrets"}},
				{Origin: synchubv1alpha1.RelatedOriginTarget, Resource: synchubv1alpha1.RelatedResourceDescriptor{Resource: "events"}},
			},
		}),
		publish("gadgets", synchubv1alpha1.PublishedResourceSpec{Resource: synchubv1alpha1.ResourceDescriptor{Group: "example.dev", Kind: "Gadget"}}),
	}, mapper)
	if got, want := formatResources(resources), "events:up,pods:up,secrets,widgets.example.dev:crd"; err != nil || got != want || !slices.Equal(unresolved, []string{"gadgets"}) {
		t.Errorf("got %s, untold %v, %v; want %s", got, unresolved, err, want)
	}
	_, _, err = PublishedResources([]synchubv1alpha1.PublishedResource{
		publish("all", synchubv1alpha1.PublishedResourceSpec{Resource: synchubv1alpha1.ResourceDescriptor{Group: "*", Resource: "*"}}),
	}, mapper)
	if err == nil || !strings.Contains(err.Error(), `"*.*" is not a resource`) {
		t.Errorf("a wildcard: %v", err)
	}
}

const adminKubeconfig = `{kind: Config, apiVersion: v1, current-context: it,
contexts: [{name: it, context: {cluster: it, user: it}}, {name: other, context: {cluster: other, user: it}}],
clusters: [{name: it, cluster: {%s}}, {name: other, cluster: {server: 'https://other.example:6443'}}],
users: [{name: it, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: "false", interactiveMode: Never}}}]}`

// writeFiles writes files to a directory and returns the path of the kubeconfig among them.
func writeFiles(t *testing.T, files map[string]string) (kubeconfig string) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "kubeconfig")
}

// hubKubeconfig returns the hub's kubeconfig for the cluster of an administrator's kubeconfig.
func hubKubeconfig(t *testing.T, admin *AdminConfig) *clientcmdapi.Config {
	t.Helper()
	written, err := admin.kubeconfig("t0ken")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.Load(written)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func TestLoadAdminConfig(t *testing.T) {
	bundle, _, err := cert.GenerateSelfSignedCertKey("it.example", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	authority := string(bundle)
	for name, test := range map[string]struct{ cluster, context, server, refused string }{
		"plain":               {cluster: "server: 'https://it.example:6443'", server: "https://it.example:6443"},
		"another context":     {cluster: "server: 'https://it.example:6443'", context: "other", server: "https://other.example:6443"},
		"no such context":     {cluster: "server: 'https://it.example:6443'", context: "none", refused: "none"},
		"not verified":        {cluster: "server: 'https://it.example:6443', insecure-skip-tls-verify: true", refused: "insecure-skip-tls-verify"},
		"plain http":          {cluster: "server: 'http://it.example:6443'", refused: "https"},
		"a proxy":             {cluster: "server: 'https://it.example:6443', proxy-url: 'https://proxy.example'", refused: "proxy-url"},
		"a CA that is a file": {cluster: "server: 'https://it.example:6443', certificate-authority: ca.crt", server: "https://it.example:6443"},
		"a CA that is absent": {cluster: "server: 'https://it.example:6443', certificate-authority: none.crt", refused: "none.crt"},
	} {
		t.Run(name, func(t *testing.T) {
			file := writeFiles(t, map[string]string{"kubeconfig": fmt.Sprintf(adminKubeconfig, test.cluster), "ca.crt": authority})
			admin, err := LoadAdminConfig(file, test.context)
			if test.refused != "" {
				if err == nil || !strings.Contains(err.Error(), test.refused) {
					t.Errorf("want an error with %q, got %v", test.refused, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			config := hubKubeconfig(t, admin)
			cluster := config.Clusters["target"]
			if cluster.Server != test.server || cluster.CertificateAuthority != "" || strings.Contains(test.cluster, "ca.crt") != (string(cluster.CertificateAuthorityData) == authority) {
				t.Errorf("the hub's cluster is %+v", cluster)
			}
			if user := config.AuthInfos["target"]; user.Token != "t0ken" || user.Exec != nil {
				t.Error("the hub's user is not what it must be")
			}
		})
	}
}

func TestTokensAreKeptForHalfOfTheirLife(t *testing.T) {
	issued := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, fmt.Appendf(nil, adminKubeconfig, "server: 'https://it.example:6443'"), 0o600); err != nil {
		t.Fatal(err)
	}
	read := func(context string) *AdminConfig {
		admin, err := LoadAdminConfig(file, context)
		if err != nil {
			t.Fatal(err)
		}
		return admin
	}
	payload := fmt.Sprintf(`{"iat":%d,"exp":%d,"kubernetes.io":{"namespace":"synchub","serviceaccount":{"name":"x","uid":"u"}}}`, issued.Unix(), issued.Add(10*time.Hour).Unix())
	jwt := "h." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".s"
	for name, test := range map[string]struct {
		token, context, user string
		uid                  types.UID
		after                time.Duration
		good                 bool
	}{
		"new":                       {token: jwt, user: "x", uid: "u", good: true},
		"just before half":          {token: jwt, user: "x", uid: "u", after: 5*time.Hour - time.Second, good: true},
		"at half":                   {token: jwt, user: "x", uid: "u", after: 5 * time.Hour},
		"of another ServiceAccount": {token: jwt, user: "y", uid: "u"},
		"of one that was replaced":  {token: jwt, user: "x", uid: "v"},
		"for another server":        {token: jwt, user: "x", uid: "u", context: "other"},
		"no JWT":                    {token: "opaque", user: "x", uid: "u"},
		"garbage":                   {token: "a.%.c", user: "x", uid: "u"},
		"no JSON":                   {token: "a.Zm9v.c", user: "x", uid: "u"}, //nolint:gosec // not a real token
	} {
		t.Run(name, func(t *testing.T) {
			has, err := read(test.context).kubeconfig(test.token)
			if err != nil {
				t.Fatal(err)
			}
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "synchub", Name: test.user, UID: test.uid}}
			if good := read("").isKubeconfigCurrent(has, account, issued.Add(test.after)); good != test.good {
				t.Errorf("it is good: %v", good)
			}
		})
	}
	if read("").isKubeconfigCurrent([]byte("nonsense"), &corev1.ServiceAccount{}, issued) {
		t.Error("nonsense is good")
	}
}

// Each namespace costs a watch of each resource. A registration accepts as many namespaces as the schema of SyncTargets,
// and refuses more before it writes anything.
func TestManyNamespacesAreRefused(t *testing.T) {
	definition := fixtures.DecodeFile[apiextensionsv1.CustomResourceDefinition](t, "../../../apis/schemas/crds/edge.kubestellar.io_synctargets.yaml")
	only := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["namespaces"].Properties["only"]
	if only.MaxItems == nil || *only.MaxItems != maxNamespaces {
		t.Errorf("the schema takes another number: %v", only.MaxItems)
	}
	plan := Registrar{Namespaces: []string{"a", "a"}}
	for number := range maxNamespaces {
		if err := plan.setNamespaces(&edgev2alpha1.SyncTarget{}); err != nil {
			t.Fatalf("%d namespaces: %v", number, err)
		}
		plan.Namespaces = append(plan.Namespaces, fmt.Sprint("b", number))
	}
	if err := plan.setNamespaces(&edgev2alpha1.SyncTarget{}); err == nil || !strings.Contains(err.Error(), "--namespaces has 65 namespaces, and may have at most 64") {
		t.Errorf("got %v", err)
	}
}
