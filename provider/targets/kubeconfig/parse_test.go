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

package kubeconfig

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/test/fixtures"
)

// secret stands in place of a credential; no error may show it.
const secret = "5ecret-value"

var (
	secretData  = base64.StdEncoding.EncodeToString([]byte(secret))
	certificate = newKeyPair()
	goodCA      = "certificate-authority-data: " + certificate.data
	goodCluster = "server: https://cluster.example.org:6443, " + goodCA
	goodUser    = "token: " + secret
	goodPair    = "client-certificate-data: " + certificate.data + ", client-key-data: " + certificate.keyData
)

// keyPair is a certificate with its key, in PEM form, and as a kubeconfig has it.
type keyPair struct {
	pem, key      []byte
	data, keyData string
}

func newKeyPair() (made keyPair) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err)
	}
	made.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})
	made.key = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	made.data, made.keyData = base64.StdEncoding.EncodeToString(made.pem), base64.StdEncoding.EncodeToString(made.key)
	return made
}

var acceptedKubeconfigs = map[string]struct {
	cluster, user string
	want          rest.Config
}{
	"a token": {goodCluster, goodUser, rest.Config{
		Host: "https://cluster.example.org:6443", BearerToken: secret, TLSClientConfig: rest.TLSClientConfig{CAData: certificate.pem},
	}},
	"a client certificate": {goodCluster, goodPair, rest.Config{
		Host:            "https://cluster.example.org:6443",
		TLSClientConfig: rest.TLSClientConfig{CAData: certificate.pem, CertData: certificate.pem, KeyData: certificate.key},
	}},
	"a name with a password": {goodCluster, "username: somebody, password: " + secret, rest.Config{
		Host: "https://cluster.example.org:6443", Username: "somebody", Password: secret, TLSClientConfig: rest.TLSClientConfig{CAData: certificate.pem},
	}},
	"nobody": {goodCluster, "", rest.Config{
		Host: "https://cluster.example.org:6443", TLSClientConfig: rest.TLSClientConfig{CAData: certificate.pem},
	}},
	"a path and another name, and no CA": {"server: https://127.0.0.1/clusters/one, tls-server-name: one.example.org", goodUser, rest.Config{
		Host: "https://127.0.0.1/clusters/one", BearerToken: secret, TLSClientConfig: rest.TLSClientConfig{ServerName: "one.example.org"},
	}},
	"extensions": {goodCluster + extensions, goodUser + extensions, rest.Config{
		Host: "https://cluster.example.org:6443", BearerToken: secret, TLSClientConfig: rest.TLSClientConfig{CAData: certificate.pem},
	}},
	"loopback":          {"server: 'https://[::1]:6443'", goodUser, rest.Config{Host: "https://[::1]:6443", BearerToken: secret}},
	"a private network": {"server: 'https://10.0.0.1'", goodUser, rest.Config{Host: "https://10.0.0.1", BearerToken: secret}},
	"a long token": {goodCluster, "token: " + strings.Repeat("t", maxToken), rest.Config{
		Host: "https://cluster.example.org:6443", BearerToken: strings.Repeat("t", maxToken), TLSClientConfig: rest.TLSClientConfig{CAData: certificate.pem},
	}},
	"unknown fields": {goodCluster + ", Proxy-URL: http://proxy", goodUser + ", Exec: {command: x}", rest.Config{
		Host: "https://cluster.example.org:6443", BearerToken: secret, TLSClientConfig: rest.TLSClientConfig{CAData: certificate.pem},
	}},
}

// extensions are what other programs keep in a kubeconfig.
const extensions = ", extensions: [{name: exec, extension: {command: /bin/x, exec: {command: x}, tokenFile: /run/token, as: admin}}]"

// The parser ignores other contexts.
func TestOnlyTheCurrentContextCounts(t *testing.T) {
	g := NewWithT(t)
	other := `
- name: another
  %s: {exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/x}, insecure-skip-tls-verify: true, server: "http://169.254.169.254", tokenFile: /run/token}`
	kubeconfig := fixtures.Kubeconfig(goodCluster, goodUser)
	for list, item := range map[string]string{"clusters": "cluster", "users": "user"} {
		kubeconfig = strings.Replace(kubeconfig, list+":", list+":"+fmt.Sprintf(other, item), 1)
	}
	kubeconfig = strings.Replace(kubeconfig, "contexts:", "contexts:\n- name: away\n  context: {cluster: another, user: another}", 1)
	config, err := Parse([]byte(kubeconfig))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.BearerToken).To(Equal(secret))
	_, err = Parse([]byte(strings.Replace(kubeconfig, "current-context: here", "current-context: away", 1)))
	g.Expect(err).To(MatchError(ContainSubstring(fieldServer)))
}

func TestParseAccepts(t *testing.T) {
	for name, tt := range acceptedKubeconfigs {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := Parse([]byte(fixtures.Kubeconfig(tt.cluster, tt.user)))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(withoutProxy(t, got)).To(Equal(&tt.want))
		})
	}
}

// withoutProxy returns the config without its proxy function, which must exist and choose no proxy: without a function,
// clients use the environment's proxy.
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
	"a program":            {fixtures.Kubeconfig(goodCluster, "exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/x, args: ["+secret+"], interactiveMode: Never}"), "users.user.exec"},
	"a token and program":  {fixtures.Kubeconfig(goodCluster, goodUser+", exec: {command: x, env: [{name: A, value: "+secret+"}]}"), "users.user.exec"},
	"an auth provider":     {fixtures.Kubeconfig(goodCluster, "auth-provider: {name: oidc, config: {refresh-token: "+secret+"}}"), "users.user.auth-provider"},
	"a token file":         {fixtures.Kubeconfig(goodCluster, "tokenFile: /run/"+secret), "users.user.tokenFile"},
	"a token and its file": {fixtures.Kubeconfig(goodCluster, goodUser+", tokenFile: /run/token"), "users.user.tokenFile"},
	"a certificate file":   {fixtures.Kubeconfig(goodCluster, "client-certificate: /run/"+secret+", client-key-data: "+secretData), "users.user.client-certificate"},
	"a key file":           {fixtures.Kubeconfig(goodCluster, "client-certificate-data: "+certificate.data+", client-key: "+secret), "users.user.client-key"},
	"a certificate alone":  {fixtures.Kubeconfig(goodCluster, "client-certificate-data: "+secretData), "users.user.client-certificate-data"},
	"a key alone":          {fixtures.Kubeconfig(goodCluster, "client-key-data: "+secretData), "users.user.client-key-data"},
	"a CA file":            {fixtures.Kubeconfig("server: https://x, certificate-authority: /run/"+secret, goodUser), "clusters.cluster.certificate-authority"},
	"a CA and its file":    {fixtures.Kubeconfig(goodCluster+", certificate-authority: ca.crt", goodUser), "clusters.cluster.certificate-authority"},
	"a proxy":              {fixtures.Kubeconfig(goodCluster+", proxy-url: 'http://me:"+secret+"@proxy'", goodUser), "clusters.cluster.proxy-url"},
	"no verification":      {fixtures.Kubeconfig("server: https://x, insecure-skip-tls-verify: true", goodUser), "clusters.cluster.insecure-skip-tls-verify"},
	"another user":         {fixtures.Kubeconfig(goodCluster, goodUser+", as: admin"), "users.user.as"},
	"another user's UID":   {fixtures.Kubeconfig(goodCluster, goodUser+", as-uid: "+secret), "users.user.as"},
	"another group":        {fixtures.Kubeconfig(goodCluster, goodUser+", as-groups: ['system:masters']"), "users.user.as"},
	"another user's extra": {fixtures.Kubeconfig(goodCluster, goodUser+", as-user-extra: {scopes: [all]}"), "users.user.as"},

	"a token and a password": {fixtures.Kubeconfig(goodCluster, goodUser+", username: me, password: "+secret), fieldPassword},
	"a token and a name":     {fixtures.Kubeconfig(goodCluster, goodUser+", username: me"), fieldPassword},
	"an endless token":       {fixtures.Kubeconfig(goodCluster, "token: "+strings.Repeat(secret, maxToken/len(secret)+1)), fieldToken},
	"an endless password":    {fixtures.Kubeconfig(goodCluster, "username: me, password: "+strings.Repeat(secret, maxPassword/len(secret)+1)), fieldPassword},
	"an endless name":        {fixtures.Kubeconfig(goodCluster, "username: "+strings.Repeat(secret, maxPassword/len(secret)+1)), "users.user.username"},
	"an endless URL":         {fixtures.Kubeconfig("server: https://x/"+strings.Repeat(secret, maxServer/len(secret)), goodUser), fieldServer},
	"an endless server name": {fixtures.Kubeconfig("server: https://x, tls-server-name: "+strings.Repeat(secret, maxServerName/len(secret)+1), goodUser), "clusters.cluster.tls-server-name"},
	"too many authorities":   {fixtures.Kubeconfig("server: https://x, certificate-authority-data: "+repeated(certificate.pem, maxCA), goodUser), fieldCA},
	"too many certificates":  {fixtures.Kubeconfig(goodCluster, "client-certificate-data: "+repeated(certificate.pem, maxCertificate)+", client-key-data: "+certificate.keyData), fieldCertificate},
	"an endless key":         {fixtures.Kubeconfig(goodCluster, "client-certificate-data: "+certificate.data+", client-key-data: "+repeated(certificate.key, maxCertificate)), fieldKey},
	"no authority's data":    {fixtures.Kubeconfig("server: https://x, certificate-authority-data: "+secretData, goodUser), fieldCA},
	"no certificate's data":  {fixtures.Kubeconfig(goodCluster, "client-certificate-data: "+secretData+", client-key-data: "+certificate.keyData), fieldCertificate},
	"no key's data":          {fixtures.Kubeconfig(goodCluster, "client-certificate-data: "+certificate.data+", client-key-data: "+secretData), fieldCertificate},
	"another key":            {fixtures.Kubeconfig(goodCluster, "client-certificate-data: "+certificate.data+", client-key-data: "+newKeyPair().keyData), fieldCertificate},

	"a link-local address":      {fixtures.Kubeconfig("server: 'https://169.254.1.1:6443'", goodUser), fieldServer},
	"a link-local IPv6 address": {fixtures.Kubeconfig("server: 'https://[fe80::1]'", goodUser), fieldServer},
	"an address with a zone":    {fixtures.Kubeconfig("server: 'https://[fe80::1%25eth0]'", goodUser), fieldServer},
	"a metadata service":        {fixtures.Kubeconfig("server: 'https://169.254.169.254/latest'", goodUser), fieldServer},
	"a metadata IPv6 address":   {fixtures.Kubeconfig("server: 'https://[fd00:ec2::254]'", goodUser), fieldServer},
	"an IPv4-mapped address":    {fixtures.Kubeconfig("server: 'https://[::ffff:169.254.169.254]'", goodUser), fieldServer},
	"a NAT64 address":           {fixtures.Kubeconfig("server: 'https://[64:ff9b::a9fe:a9fe]'", goodUser), fieldServer},
	"the unspecified address":   {fixtures.Kubeconfig("server: 'https://0.0.0.0:6443'", goodUser), fieldServer},
	"the unspecified IPv6 one":  {fixtures.Kubeconfig("server: 'https://[::]:6443'", goodUser), fieldServer},
	"a multicast address":       {fixtures.Kubeconfig("server: 'https://224.0.0.1'", goodUser), fieldServer},

	"http":                  {fixtures.Kubeconfig("server: http://x", goodUser), "clusters.cluster.server"},
	"no scheme":             {fixtures.Kubeconfig("server: 'x:6443'", goodUser), "clusters.cluster.server"},
	"no host":               {fixtures.Kubeconfig("server: 'https:///api'", goodUser), "clusters.cluster.server"},
	"no authority":          {fixtures.Kubeconfig("server: 'https:x'", goodUser), "clusters.cluster.server"},
	"no server":             {fixtures.Kubeconfig("", goodUser), "clusters.cluster.server"},
	"a socket":              {fixtures.Kubeconfig("server: unix:///run/x.sock", goodUser), "clusters.cluster.server"},
	"a password in the URL": {fixtures.Kubeconfig("server: 'https://me:"+secret+"@x'", goodUser), "clusters.cluster.server"},
	"a name in the URL":     {fixtures.Kubeconfig("server: 'https://"+secret+"@x'", goodUser), "clusters.cluster.server"},
	"no URL":                {fixtures.Kubeconfig("server: 'https://x:"+secret+"'", goodUser), "clusters.cluster.server"},

	"nothing":                 {"", "current-context"},
	"null":                    {"null", "current-context"},
	"no current context":      {strings.Replace(fixtures.Kubeconfig(goodCluster, goodUser), "current-context: here", "", 1), "current-context"},
	"an unknown context":      {strings.Replace(fixtures.Kubeconfig(goodCluster, goodUser), "current-context: here", "current-context: "+secret, 1), "current-context"},
	"an unknown cluster":      {strings.Replace(fixtures.Kubeconfig(goodCluster, goodUser), "cluster: this", "cluster: "+secret, 1), "contexts.context.cluster"},
	"an unknown user":         {strings.Replace(fixtures.Kubeconfig(goodCluster, goodUser), "user: me", "user: "+secret, 1), "contexts.context.user"},
	"a context of nothing":    {strings.Replace(fixtures.Kubeconfig(goodCluster, goodUser), "context: {cluster: this, user: me, namespace: other}", "", 1), "contexts.context.cluster"},
	"a cluster of nothing":    {strings.Replace(fixtures.Kubeconfig("", goodUser), "cluster: {}", "", 1), "clusters.cluster.server"},
	"text":                    {secret, "its syntax"},
	"a list":                  {"[" + secret + "]", "its syntax"},
	"a truncated one":         {fixtures.Kubeconfig(goodCluster, goodUser)[:250], "its syntax"},
	"a list for a token":      {fixtures.Kubeconfig(goodCluster, "token: ["+secret+"]"), "its syntax"},
	"another kind":            {"{apiVersion: v1, kind: Secret, data: {token: " + secretData + "}}", "its syntax"},
	"another version":         {strings.Replace(fixtures.Kubeconfig(goodCluster, goodUser), "apiVersion: v1", "apiVersion: v9", 1), "its syntax"},
	"data that is no base64":  {fixtures.Kubeconfig("server: https://x, certificate-authority-data: '"+secret+"!'", goodUser), "its syntax"},
	"only a current context":  {"{apiVersion: v1, kind: Config, current-context: " + secret + "}", "current-context"},
	"a port without a host":   {fixtures.Kubeconfig("server: 'https://:6443'", goodUser), fieldServer},
	"aliases that multiply":   {aliasBomb(), "its syntax"},
	"aliases of a long text":  {textBomb(), "its syntax"},
	"merges that multiply":    {fixtures.Kubeconfig(goodCluster, goodUser) + "extensions: [{name: a, extension: &a {b: c}}, {name: d, extension: {<<: *a}}]", "its syntax"},
	"a single alias":          {strings.Replace(fixtures.Kubeconfig(goodCluster, "token: *t"), "current-context: here", "current-context: &t here", 1), "its syntax"},
	"a single anchor":         {fixtures.Kubeconfig(goodCluster, "token: &t "+secret), "its syntax"},
	"nested lists":            {fixtures.Kubeconfig(goodCluster, goodUser) + "preferences: " + strings.Repeat("[", 1000) + strings.Repeat("]", 1000), "its syntax"},
	"nested maps":             {fixtures.Kubeconfig(goodCluster, goodUser) + "preferences: " + strings.Repeat("{a: ", 100) + strings.Repeat("}", 100), "its syntax"},
	"nested lists of blocks":  {fixtures.Kubeconfig(goodCluster, goodUser) + "preferences:\n  " + strings.Repeat("- ", 5000), "its syntax"},
	"an alias of itself":      {"users: &users [*users]", "its syntax"},
	"brackets without an end": {strings.Repeat("[", MaxSize), "its syntax"},
	"too large":               {fixtures.Kubeconfig(goodCluster, goodUser) + "#" + strings.Repeat(secret, MaxSize/len(secret)), "its size"},
}

// aliasBomb is a kubeconfig of 1 KiB that would be gigabytes when written out.
func aliasBomb() string {
	bomb := []string{fixtures.Kubeconfig(goodCluster, goodUser), "level0: &level0 [x]"}
	for level := range 12 {
		aliases := strings.Repeat(fmt.Sprintf("*level%d, ", level), 10)
		bomb = append(bomb, fmt.Sprintf("level%d: &level%d [%s]", level+1, level+1, aliases))
	}
	return strings.Join(bomb, "\n")
}

// textBomb is a kubeconfig of 64 KiB with few aliases, as the parser counts them, that would be hundreds of megabytes when
// written out.
func textBomb() string {
	return fixtures.Kubeconfig(goodCluster, goodUser) + "preferences: {long: &a " + strings.Repeat("x", 32<<10) + ", many: [" + strings.Repeat("*a,", 10<<10) + "]}"
}

// repeated is PEM data of more than a number of bytes, as a kubeconfig has it.
func repeated(block []byte, more int) string {
	return base64.StdEncoding.EncodeToString(bytes.Repeat(block, more/len(block)+1))
}

func TestParseRefuses(t *testing.T) {
	for name, tt := range refusedKubeconfigs {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config, err := Parse([]byte(tt.kubeconfig))
			g.Expect(config).To(BeNil())
			var refused *InvalidError
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

// An accepted kubeconfig contains only an https server, its trust, and a user's credentials.
func FuzzParse(f *testing.F) {
	for _, name := range slices.Sorted(maps.Keys(acceptedKubeconfigs)) {
		f.Add([]byte(fixtures.Kubeconfig(acceptedKubeconfigs[name].cluster, acceptedKubeconfigs[name].user)))
	}
	for _, name := range slices.Sorted(maps.Keys(refusedKubeconfigs)) {
		f.Add([]byte(refusedKubeconfigs[name].kubeconfig))
	}
	f.Fuzz(func(t *testing.T, kubeconfig []byte) {
		got, err := Parse(kubeconfig)
		if err != nil {
			var refused *InvalidError
			if !errors.As(err, &refused) || refused.Field == "" || refused.Reason == "" || got != nil {
				t.Fatalf("want a refusal and nothing else, got %v and %v", err, got)
			}
			return
		}
		expectPlainServer(t, got.Host)
		if bytes.Contains(kubeconfig, []byte("*a")) && len(got.Host)+len(got.BearerToken)+len(got.Username)+len(got.Password)+len(got.ServerName) > len(kubeconfig) {
			t.Error("accepted more than was written")
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

// expectPlainServer fails unless the host is the URL of an https server. An IP address in it must not be denied.
func expectPlainServer(t *testing.T, host string) {
	t.Helper()
	server, err := url.Parse(host)
	if err != nil || server.Scheme != "https" || server.Host == "" || server.User != nil {
		t.Fatalf("accepted the server %q", host)
	}
	if address, err := netip.ParseAddr(server.Hostname()); err == nil && (address.IsLinkLocalUnicast() || address.IsMulticast() || address.IsUnspecified()) {
		t.Errorf("accepted the address %s", address)
	}
}
