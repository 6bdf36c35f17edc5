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

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/synchub-dev/synchub/hack/buildtools/download"
	"github.com/synchub-dev/synchub/hack/screen"
)

// oneHost sends the requests to all hosts to one server, which sees the host in the path.
type oneHost struct {
	server    *httptest.Server
	transport http.RoundTripper
}

func (o oneHost) RoundTrip(request *http.Request) (*http.Response, error) {
	redirected := request.Clone(request.Context())
	redirected.URL.Path = "/" + request.URL.Host + request.URL.Path
	redirected.URL.Host = o.server.Listener.Addr().String()
	return o.transport.RoundTrip(redirected)
}

// newInstaller returns an installer for the fixture. A server answers for the project of kwok, whose programs have the
// path as content.
func newInstaller(t *testing.T, f fixture) installer {
	t.Helper()
	const api = "/api.github.com/repos/kubernetes-sigs/kwok/releases/tags/v2.1.0"
	const files = "/github.com/kubernetes-sigs/kwok/releases/download/v2.1.0/"
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == api:
			var assets []string
			for _, on := range platforms {
				name := fmt.Sprintf("kwok-%s-%s", on.os, on.arch)
				hash := sha256.Sum256([]byte(files + name))
				assets = append(assets, fmt.Sprintf(`{"name": %q, "digest": "sha256:%s"}`, name, hex.EncodeToString(hash[:])))
			}
			fmt.Fprintf(w, `{"assets": [%s]}`, strings.Join(assets, ","))
		case strings.HasPrefix(r.URL.Path, files):
			fmt.Fprint(w, r.URL.Path) //nolint:gosec // the server of a test
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	client := download.NewClient()
	client.HTTP.Transport = oneHost{server: server, transport: server.Client().Transport}
	return installer{toolsDir: f.tools, binDir: f.bin, client: client, on: platform{"linux", "arm64"}}
}

// kwokFixture pins a version of kwok.
func kwokFixture(t *testing.T) fixture {
	t.Helper()
	f := newFixture(t)
	f.tool = tool{name: "kwok", dir: "kwok", pkg: "sigs.k8s.io/kwok/cmd/kwok", ldflags: stripped}
	f.write(t, filepath.Join(f.tools, "kwok", "go.mod"), "module m\n\nrequire sigs.k8s.io/kwok v2.1.0\n")
	f.write(t, filepath.Join(f.tools, "kwok", "go.sum"), "")
	return f
}

func TestDownload(t *testing.T) {
	f := kwokFixture(t)
	i := newInstaller(t, f)
	p, err := pinTool(f.tools, f.tool)
	if err != nil {
		t.Fatal(err)
	}
	silent, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close() //nolint:errcheck // nothing is kept there
	show := screen.New(silent)

	if err := i.downloadOrBuild(t.Context(), show, []pinned{p}, false); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(f.bin, "kwok"))
	if err != nil || path.Base(string(content)) != "kwok-linux-arm64" {
		t.Errorf("installed is %q, %v", content, err)
	}
	if f.outdated(t) {
		t.Error("a downloaded tool would be built by the next make")
	}

	f.write(t, i.pinsPath(), "")
	err = i.downloadOrBuild(t.Context(), show, []pinned{p}, false)
	for _, want := range []string{"download kwok v2.1.0", "no checksum is pinned", "kwok-linux-arm64", "run: go run ./hack/buildtools kwok"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

func TestWhatCannotBeDownloadedIsBuilt(t *testing.T) {
	f := kwokFixture(t)
	i := newInstaller(t, f)
	silent, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close() //nolint:errcheck // nothing is kept there
	install := func(version string, mayBuild bool) error {
		f.write(t, filepath.Join(f.tools, "kwok", "go.mod"), "module m\n\nrequire sigs.k8s.io/kwok "+version+"\n")
		p, err := pinTool(f.tools, f.tool)
		if err != nil {
			t.Fatal(err)
		}
		return i.downloadOrBuild(t.Context(), screen.New(silent), []pinned{p}, mayBuild)
	}
	// The server does not have this version, and the fixture has no source of it.
	if err := install("v2.2.0", false); !errors.Is(err, download.ErrUnavailable) {
		t.Errorf("a download: %v", err)
	}
	if err := install("v2.2.0", true); err == nil || !strings.Contains(err.Error(), "build kwok") {
		t.Errorf("a build after the download: %v", err)
	}
	f.write(t, i.pinsPath(), "")
	if err := install("v2.1.0", true); err == nil || !strings.Contains(err.Error(), "no checksum is pinned") {
		t.Errorf("a file that may not be trusted: %v", err)
	}
}

func TestDivide(t *testing.T) {
	var all []pinned
	for _, name := range []string{"kcp", "kube-apiserver", "kubectl", "helm"} {
		all = append(all, pinned{tool: tool{name: name}, version: "v1.2.3"})
	}
	for on, want := range map[platform]string{
		{"linux", "amd64"}:  "helm",
		{"darwin", "arm64"}: "kube-apiserver, helm",
	} {
		downloads, unpublished := divide(all, on)
		if got := names(unpublished); got != want || len(downloads)+len(unpublished) != len(all) {
			t.Errorf("on %s built are %s, downloaded %d; want %s built", on, got, len(downloads), want)
		}
	}
}
