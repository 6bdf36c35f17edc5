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

package targets

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
)

// secret stands where a credential would be; no error may show it.
const secret = "5ecret-value"

var (
	secretData  = base64.StdEncoding.EncodeToString([]byte(secret))
	goodCluster = "server: https://cluster.example.org:6443, certificate-authority-data: " + secretData
	goodUser    = "token: " + secret
)

// kubeconfigOf returns a kubeconfig of one cluster and one user, each given as the fields of a YAML map.
func kubeconfigOf(cluster, user string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Config
current-context: here
contexts:
- name: here
  context: {cluster: this, user: me, namespace: other}
clusters:
- name: this
  cluster: {%s}
users:
- name: me
  user: {%s}
`, cluster, user)
}

var acceptedKubeconfigs = map[string]struct {
	cluster, user string
	want          rest.Config
}{
	"a token": {goodCluster, goodUser, rest.Config{
		Host: "https://cluster.example.org:6443", BearerToken: secret, TLSClientConfig: rest.TLSClientConfig{CAData: []byte(secret)},
	}},
	"a client certificate": {goodCluster, "client-certificate-data: " + secretData + ", client-key-data: " + secretData, rest.Config{
		Host:            "https://cluster.example.org:6443",
		TLSClientConfig: rest.TLSClientConfig{CAData: []byte(secret), CertData: []byte(secret), KeyData: []byte(secret)},
	}},
	"a name with a password": {goodCluster, "username: somebody, password: " + secret, rest.Config{
		Host: "https://cluster.example.org:6443", Username: "somebody", Password: secret, TLSClientConfig: rest.TLSClientConfig{CAData: []byte(secret)},
	}},
	"nobody": {goodCluster, "", rest.Config{
		Host: "https://cluster.example.org:6443", TLSClientConfig: rest.TLSClientConfig{CAData: []byte(secret)},
	}},
	"a path and another name, and no CA": {"server: https://127.0.0.1/clusters/one, tls-server-name: one.example.org", goodUser, rest.Config{
		Host: "https://127.0.0.1/clusters/one", BearerToken: secret, TLSClientConfig: rest.TLSClientConfig{ServerName: "one.example.org"},
	}},
	"what nobody knows": {goodCluster + ", Proxy-URL: http://proxy", goodUser + ", Exec: {command: x}", rest.Config{
		Host: "https://cluster.example.org:6443", BearerToken: secret, TLSClientConfig: rest.TLSClientConfig{CAData: []byte(secret)},
	}},
}

func TestParseKubeconfigAccepts(t *testing.T) {
	for name, tt := range acceptedKubeconfigs {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := ParseKubeconfig([]byte(kubeconfigOf(tt.cluster, tt.user)))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(withoutProxy(t, got)).To(Equal(&tt.want))
		})
	}
}

// withoutProxy returns the config without its function for proxies, which must be there and choose none: without one the
// environment's is used.
func withoutProxy(t *testing.T, config *rest.Config) *rest.Config {
	t.Helper()
	if config.Proxy == nil {
		t.Fatal("the environment's proxy is used")
	}
	server, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	if proxy, err := config.Proxy(&http.Request{URL: server}); proxy != nil || err != nil {
		t.Errorf("want no proxy, got %v, %v", proxy, err)
	}
	config = rest.CopyConfig(config)
	config.Proxy = nil
	return config
}

// refusedKubeconfigs are kubeconfigs with the field that the refusal names.
var refusedKubeconfigs = map[string]struct{ kubeconfig, field string }{
	"a program":            {kubeconfigOf(goodCluster, "exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/x, args: ["+secret+"], interactiveMode: Never}"), "users.user.exec"},
	"a token and program":  {kubeconfigOf(goodCluster, goodUser+", exec: {command: x, env: [{name: A, value: "+secret+"}]}"), "users.user.exec"},
	"an auth provider":     {kubeconfigOf(goodCluster, "auth-provider: {name: oidc, config: {refresh-token: "+secret+"}}"), "users.user.auth-provider"},
	"a token file":         {kubeconfigOf(goodCluster, "tokenFile: /run/"+secret), "users.user.tokenFile"},
	"a token and its file": {kubeconfigOf(goodCluster, goodUser+", tokenFile: /run/token"), "users.user.tokenFile"},
	"a certificate file":   {kubeconfigOf(goodCluster, "client-certificate: /run/"+secret+", client-key-data: "+secretData), "users.user.client-certificate"},
	"a key file":           {kubeconfigOf(goodCluster, "client-certificate-data: "+secretData+", client-key: "+secret), "users.user.client-key"},
	"a certificate alone":  {kubeconfigOf(goodCluster, "client-certificate-data: "+secretData), "users.user.client-certificate-data"},
	"a key alone":          {kubeconfigOf(goodCluster, "client-key-data: "+secretData), "users.user.client-key-data"},
	"a CA file":            {kubeconfigOf("server: https://x, certificate-authority: /run/"+secret, goodUser), "clusters.cluster.certificate-authority"},
	"a CA and its file":    {kubeconfigOf(goodCluster+", certificate-authority: ca.crt", goodUser), "clusters.cluster.certificate-authority"},
	"a proxy":              {kubeconfigOf(goodCluster+", proxy-url: 'http://me:"+secret+"@proxy'", goodUser), "clusters.cluster.proxy-url"},
	"no verification":      {kubeconfigOf("server: https://x, insecure-skip-tls-verify: true", goodUser), "clusters.cluster.insecure-skip-tls-verify"},
	"another user":         {kubeconfigOf(goodCluster, goodUser+", as: admin"), "users.user.as"},
	"another user's UID":   {kubeconfigOf(goodCluster, goodUser+", as-uid: "+secret), "users.user.as"},
	"another group":        {kubeconfigOf(goodCluster, goodUser+", as-groups: ['system:masters']"), "users.user.as"},
	"another user's extra": {kubeconfigOf(goodCluster, goodUser+", as-user-extra: {scopes: [all]}"), "users.user.as"},

	"http":                  {kubeconfigOf("server: http://x", goodUser), "clusters.cluster.server"},
	"no scheme":             {kubeconfigOf("server: 'x:6443'", goodUser), "clusters.cluster.server"},
	"no host":               {kubeconfigOf("server: 'https:///api'", goodUser), "clusters.cluster.server"},
	"no authority":          {kubeconfigOf("server: 'https:x'", goodUser), "clusters.cluster.server"},
	"no server":             {kubeconfigOf("", goodUser), "clusters.cluster.server"},
	"a socket":              {kubeconfigOf("server: unix:///run/x.sock", goodUser), "clusters.cluster.server"},
	"a password in the URL": {kubeconfigOf("server: 'https://me:"+secret+"@x'", goodUser), "clusters.cluster.server"},
	"a name in the URL":     {kubeconfigOf("server: 'https://"+secret+"@x'", goodUser), "clusters.cluster.server"},
	"no URL":                {kubeconfigOf("server: 'https://x:"+secret+"'", goodUser), "clusters.cluster.server"},

	"nothing":                 {"", "current-context"},
	"null":                    {"null", "current-context"},
	"no current context":      {strings.Replace(kubeconfigOf(goodCluster, goodUser), "current-context: here", "", 1), "current-context"},
	"an unknown context":      {strings.Replace(kubeconfigOf(goodCluster, goodUser), "current-context: here", "current-context: "+secret, 1), "current-context"},
	"an unknown cluster":      {strings.Replace(kubeconfigOf(goodCluster, goodUser), "cluster: this", "cluster: "+secret, 1), "contexts.context.cluster"},
	"an unknown user":         {strings.Replace(kubeconfigOf(goodCluster, goodUser), "user: me", "user: "+secret, 1), "contexts.context.user"},
	"a context of nothing":    {strings.Replace(kubeconfigOf(goodCluster, goodUser), "context: {cluster: this, user: me, namespace: other}", "", 1), "contexts.context.cluster"},
	"a cluster of nothing":    {strings.Replace(kubeconfigOf("", goodUser), "cluster: {}", "", 1), "clusters.cluster.server"},
	"text":                    {secret, "its syntax"},
	"a list":                  {"[" + secret + "]", "its syntax"},
	"half of one":             {kubeconfigOf(goodCluster, goodUser)[:250], "its syntax"},
	"a list for a token":      {kubeconfigOf(goodCluster, "token: ["+secret+"]"), "its syntax"},
	"another kind":            {"{apiVersion: v1, kind: Secret, data: {token: " + secretData + "}}", "its syntax"},
	"another version":         {strings.Replace(kubeconfigOf(goodCluster, goodUser), "apiVersion: v1", "apiVersion: v9", 1), "its syntax"},
	"data that is no base64":  {kubeconfigOf("server: https://x, certificate-authority-data: '"+secret+"!'", goodUser), "its syntax"},
	"aliases that multiply":   {aliasBomb(), "its syntax"},
	"an alias of itself":      {"users: &users [*users]", "its syntax"},
	"brackets without an end": {strings.Repeat("[", maxKubeconfig), "its syntax"},
	"a giant":                 {kubeconfigOf(goodCluster, goodUser) + "#" + strings.Repeat(secret, maxKubeconfig/len(secret)), "its size"},
}

// aliasBomb is a kubeconfig of 1 KiB that would be gigabytes when written out.
func aliasBomb() string {
	bomb := []string{kubeconfigOf(goodCluster, goodUser), "level0: &level0 [x]"}
	for level := range 12 {
		aliases := strings.Repeat(fmt.Sprintf("*level%d, ", level), 10)
		bomb = append(bomb, fmt.Sprintf("level%d: &level%d [%s]", level+1, level+1, aliases))
	}
	return strings.Join(bomb, "\n")
}

func TestParseKubeconfigRefuses(t *testing.T) {
	for name, tt := range refusedKubeconfigs {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config, err := ParseKubeconfig([]byte(tt.kubeconfig))
			g.Expect(config).To(BeNil())
			var refused *RefusedError
			g.Expect(errors.As(err, &refused)).To(BeTrue(), "%v", err)
			g.Expect(refused.Field).To(Equal(tt.field))
			g.Expect(err.Error()).To(ContainSubstring(tt.field))
			expectNoSecret(t, err.Error())
		})
	}
}

// expectNoSecret fails if the text shows the secret, or part of it.
func expectNoSecret(t *testing.T, text string) {
	t.Helper()
	for _, part := range []string{secret, secretData, secret[:4]} {
		if strings.Contains(text, part) {
			t.Errorf("shows a secret: %s", text)
		}
	}
}

// Whatever is accepted is nothing but an https server, how to trust it, and who to be there.
func FuzzParseKubeconfig(f *testing.F) {
	for _, name := range slices.Sorted(maps.Keys(acceptedKubeconfigs)) {
		f.Add([]byte(kubeconfigOf(acceptedKubeconfigs[name].cluster, acceptedKubeconfigs[name].user)))
	}
	for _, name := range slices.Sorted(maps.Keys(refusedKubeconfigs)) {
		f.Add([]byte(refusedKubeconfigs[name].kubeconfig))
	}
	f.Fuzz(func(t *testing.T, kubeconfig []byte) {
		got, err := ParseKubeconfig(kubeconfig)
		if err != nil {
			var refused *RefusedError
			if !errors.As(err, &refused) || refused.Field == "" || refused.Why == "" || got != nil {
				t.Fatalf("want a refusal and nothing else, got %v and %v", err, got)
			}
			return
		}
		server, err := url.Parse(got.Host)
		if err != nil || server.Scheme != "https" || server.Host == "" || server.User != nil {
			t.Errorf("accepted the server %q", got.Host)
		}
		allowed := &rest.Config{
			Host: got.Host, BearerToken: got.BearerToken, Username: got.Username, Password: got.Password,
			TLSClientConfig: rest.TLSClientConfig{ServerName: got.ServerName, CAData: got.CAData, CertData: got.CertData, KeyData: got.KeyData},
		}
		if bare := withoutProxy(t, got); !reflect.DeepEqual(bare, allowed) {
			t.Errorf("accepted more than who and where: %v", bare)
		}
	})
}
