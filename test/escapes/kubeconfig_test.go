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

package escapes

import (
	"io"
	"log"
	"strings"
	"testing"

	"github.com/synchub-dev/synchub/provider/targets/kubeconfig"
	"github.com/synchub-dev/synchub/test/fixtures"
)

var discarded = log.New(io.Discard, "", 0)

// Servers that a kubeconfig may not name: text that resembles an address without being a plain one, and more than a host
// with a path.
func TestHostileServerNames(t *testing.T) {
	for _, server := range []string{
		"https://localhost.", "https://localhost.:6443", "https://127.1", "https://127.0.1", "https://0x7f000001", "https://0x7f.1", "https://0X7F000001",
		"https://0177.0.0.1", "https://017700000001", "https://2130706433", "https://127.0.0.1.", "https://127.0.0.01", "https://1.2.3.4.5", "https://256.256.256.256",
		"https://example.0x", "https://example.0x1f", "https://example.123", "https://example.org.1",
		"https://[::ffff:127.0.0.1]", "https://[::ffff:7f00:1]", "https://[::1%25lo]", "https://[fe80::1%25eth0]", "https://[::ffff:169.254.169.254]:443",
		"https://a..b", "https://.a", "https://.", "https://-a.b", "https://a-.b", "https://" + strings.Repeat("a", 64) + ".b", "https://" + strings.Repeat("a.", 130) + "b",
		"https://exa%20mple.org", "https://exämple.org", "https://１２７.0.0.1", "https://a_b!c", "https://127.0.0.1%00.example.org", "https://a,b",
		"https://me@example.org", "https://me:you@example.org", "https://:@example.org", "https://example.org#fragment", "https://example.org/?query", "https://example.org?",
		"https://example.org:", "https://example.org:0", "https://example.org:65536", "https://example.org:http", "https://example.org:-1",
		"https:example.org", "https:///path", "//example.org", "http://example.org", "HTTP://example.org", "file:///etc/passwd", "unix:///run/x", "https://169.254.169.254",
		"https://0.0.0.0", "https://[::]", "https://0", "https://00", "https://[64:ff9b::a9fe:a9fe]",
	} {
		t.Run(server, func(t *testing.T) {
			_, err := kubeconfig.Parse([]byte(fixtures.Kubeconfig("server: '"+server+"'", "token: "+token)))
			if err == nil {
				t.Fatal("it is taken")
			}
			expectHarmless(t, err.Error())
		})
	}
	for _, server := range []string{
		"https://localhost", "https://LOCALHOST:6443", "https://127.0.0.1", "https://[::1]:6443", "https://10.0.0.1/clusters/root:org",
		"https://a", "https://a-b.c_d.example", "https://1.example", "https://0x7f.example", "https://xn--exmple-cua.org", "https://example.org:1", "https://example.org:65535/k8s/clusters/c-1",
	} {
		if _, err := kubeconfig.Parse([]byte(fixtures.Kubeconfig("server: '"+server+"'", "token: "+token))); err != nil {
			t.Errorf("%s is refused: %v", server, err)
		}
	}
}

// Users that a kubeconfig may not have, and invalid documents. More of them are in the tests of the parser.
func TestHostileKubeconfigs(t *testing.T) {
	const cluster = "server: 'https://127.0.0.1'"
	for name, content := range map[string]string{
		"a program":          fixtures.Kubeconfig(cluster, "exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/"+token+", interactiveMode: Never}"),
		"a provider":         fixtures.Kubeconfig(cluster, "auth-provider: {name: gcp, config: {cmd-path: /bin/"+token+"}}"),
		"a file of a token":  fixtures.Kubeconfig(cluster, "tokenFile: /run/"+token),
		"a file of a key":    fixtures.Kubeconfig(cluster, "client-key: /run/"+token),
		"an authority's":     fixtures.Kubeconfig(cluster+", certificate-authority: /run/"+token, ""),
		"a proxy":            fixtures.Kubeconfig(cluster+", proxy-url: 'http://"+token+"'", ""),
		"no verification":    fixtures.Kubeconfig(cluster+", insecure-skip-tls-verify: true", ""),
		"another name":       fixtures.Kubeconfig(cluster+", tls-server-name: 'x..y'", ""),
		"a name with a line": fixtures.Kubeconfig(cluster+`, tls-server-name: "x\ny"`, ""),
		"somebody else":      fixtures.Kubeconfig(cluster, "as: system:admin"),
		"a group":            fixtures.Kubeconfig(cluster, "as-groups: [system:masters]"),
		"anchors":            "a: &a [x]\nb: *a",
		"depth":              strings.Repeat("[", 10_000),
		"a giant":            strings.Repeat("#", 1<<20),
		"nothing":            "",
		"no YAML":            "\x00\x01" + token,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := kubeconfig.Parse([]byte(content))
			if err == nil {
				t.Fatal("it is taken")
			}
			expectHarmless(t, err.Error())
		})
	}
}
