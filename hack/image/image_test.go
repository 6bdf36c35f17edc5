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
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

var (
	of   = metadata{version: "v0.0.0-test", revision: "0123abcd", created: time.Date(2026, 2, 3, 4, 5, 6, 0, time.FixedZone("CET", 3600))}
	host = v1.Platform{OS: "linux", Architecture: runtime.GOARCH}
)

// TestImage builds the image of the repository for this platform, twice. Its programs stand in for those of the other platform, which take
// as long again.
func TestImage(t *testing.T) {
	dir := t.TempDir()
	made := make([]v1.ImageIndex, 2)
	for i, name := range []string{"one", "two"} {
		programs := filepath.Join(dir, name, "programs")
		if err := compile(t.Context(), "../..", programs, host, "-X main.version="+of.version); err != nil {
			t.Fatal(err)
		}
		made[i] = indexOf(t, programs)
		if err := writeLayout(filepath.Join(dir, name, "image"), made[i], of); err != nil {
			t.Fatal(err)
		}
		if err := writeArchive(filepath.Join(dir, name, "image.tar"), filepath.Join(dir, name, "image"), of.created); err != nil {
			t.Fatal(err)
		}
	}
	if one, two := digest(t, made[0]), digest(t, made[1]); one != two {
		t.Errorf("the same source makes %s, and then %s", one, two)
	}
	if one, two := read(t, filepath.Join(dir, "one", "image.tar")), read(t, filepath.Join(dir, "two", "image.tar")); !bytes.Equal(one, two) {
		t.Error("the same source makes two different archives")
	}
	t.Run("the layout is valid", func(t *testing.T) { checkLayout(t, filepath.Join(dir, "one", "image"), made[0]) })
	t.Run("the programs run in it", func(t *testing.T) { checkPrograms(t, made[0]) })
}

// indexOf returns an index with the same programs for two platforms.
func indexOf(t *testing.T, programs string) v1.ImageIndex {
	t.Helper()
	var images []platformImage
	for _, platform := range []v1.Platform{host, {OS: "linux", Architecture: "another"}} {
		image, err := newImage(programs, platform, of)
		if err != nil {
			t.Fatal(err)
		}
		images = append(images, platformImage{platform, image})
	}
	return newIndex(images, of)
}

// checkLayout reads a layout as other tools do.
func checkLayout(t *testing.T, dir string, want v1.ImageIndex) {
	outer, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(outer); err != nil {
		t.Error(err)
	}
	manifest, err := outer.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("%+v, %v", manifest, err)
	}
	if found := manifest.Manifests[0]; found.Digest.String() != digest(t, want) || found.Annotations["org.opencontainers.image.ref.name"] != of.version {
		t.Errorf("the layout has %+v", found)
	}
	image := imageFor(t, want)
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != "65532:65532" || config.Architecture != runtime.GOARCH || config.Config.Labels["org.opencontainers.image.revision"] != of.revision ||
		config.Config.Labels["org.opencontainers.image.created"] != "2026-02-03T03:05:06Z" || !config.Created.Equal(of.created) {
		t.Errorf("the configuration is %+v", config)
	}
}

// checkPrograms unpacks the image of this platform, and runs its programs in it as its user.
func checkPrograms(t *testing.T, index v1.ImageIndex) {
	image := imageFor(t, index)
	root := t.TempDir()
	unpack(t, image, root)
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		command []string
		want    string
	}{
		{append(slices.Clone(config.Config.Entrypoint), "version"), of.version},
		{[]string{"/usr/local/bin/kubectl-synchub", "version"}, of.version},
	} {
		command := exec.CommandContext(t.Context(), test.command[0], test.command[1:]...)
		command.Env, command.Dir = config.Config.Env, config.Config.WorkingDir
		command.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: userID, Gid: userID}}
		if os.Geteuid() != 0 {
			// Whoever is not root is so in a namespace of users.
			command.SysProcAttr = &syscall.SysProcAttr{
				Chroot: root, Cloneflags: syscall.CLONE_NEWUSER,
				UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
				GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
			}
		}
		if out, err := command.CombinedOutput(); err != nil || !strings.Contains(string(out), test.want) {
			t.Errorf("%v: %v: %s", test.command, err, out)
		}
	}
}

// unpack writes the files of an image below a directory.
func unpack(t *testing.T, image v1.Image, root string) {
	t.Helper()
	content := mutate.Extract(image)
	defer func() { _ = content.Close() }()
	names := map[string]os.FileMode{}
	for archive := tar.NewReader(content); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if !header.ModTime.Equal(of.created) || header.Uid != 0 || header.Gid != 0 {
			t.Errorf("%s is of %v, and belongs to %d:%d", header.Name, header.ModTime, header.Uid, header.Gid)
		}
		path := filepath.Join(root, filepath.Clean("/"+header.Name))
		names[strings.Trim(header.Name, "/")] = header.FileInfo().Mode()
		if header.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o755)
		} else {
			var file []byte
			if file, err = io.ReadAll(archive); err == nil {
				err = os.WriteFile(path, file, header.FileInfo().Mode().Perm())
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if names["tmp"] != os.ModeDir|os.ModeSticky|0o777 || names["usr/local/bin/synchub"] != 0o755 || names[rootsFile] != 0o644 {
		t.Errorf("the image has %v", names)
	}
}

func TestRoots(t *testing.T) {
	if count := bytes.Count(roots(), []byte("BEGIN CERTIFICATE")); count < 100 {
		t.Errorf("the image has %d root certificates", count)
	}
}

func TestParseRefuses(t *testing.T) {
	complete := []string{"-version=v1", "-revision=abc", "-created=2026-02-03T04:05:06Z"}
	if s, err := parse(complete); err != nil || len(s.platforms) != 2 {
		t.Errorf("%+v: %v", s, err)
	}
	for want, args := range map[string][]string{
		"-version and -revision": complete[2:],
		"-created":               complete[:2],
		"-platforms":             append(slices.Clone(complete), "-platforms=linux"),
		"-push":                  append(slices.Clone(complete), "-push=Not/A-Name"),
	} {
		if _, err := parse(args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", args, err)
		}
	}
	if err := run(t.Context(), append(slices.Clone(complete), "-source="+t.TempDir(), "-out="+t.TempDir())); err == nil || !strings.Contains(err.Error(), "build synchub for linux/amd64") {
		t.Errorf("of nothing it makes an image: %v", err)
	}
}

// TestPush pushes an index to a registry on loopback, under the version.
func TestPush(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	s, err := parse([]string{"-version=v1", "-revision=abc", "-created=2026-02-03T04:05:06Z", "-push=" + strings.TrimPrefix(server.URL, "http://") + "/synchub"})
	if err != nil {
		t.Fatal(err)
	}
	pushed, err := random.Index(100, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := push(t.Context(), pushed, s.push); err != nil {
		t.Fatal(err)
	}
	found, err := remote.Index(s.push)
	if err != nil {
		t.Fatal(err)
	}
	if digest(t, found) != digest(t, pushed) || !strings.HasSuffix(s.push.Name(), "/synchub:v1") {
		t.Errorf("%s has %s, and %s was pushed", s.push.Name(), digest(t, found), digest(t, pushed))
	}
}

// TestPushSBOMs pushes SBOMs to registries with and without the API for referrers, and finds them by the image.
func TestPushSBOMs(t *testing.T) {
	sboms := []sbom{{host, []byte(`{"for":"one"}`)}, {v1.Platform{OS: "linux", Architecture: "another"}, []byte(`{"for":"two"}`)}}
	for name, supported := range map[string]bool{"with the API": true, "without it": false} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(supported)))
			defer server.Close()
			s, err := parse([]string{"-version=v1", "-revision=abc", "-created=2026-02-03T04:05:06Z", "-push=" + strings.TrimPrefix(server.URL, "http://") + "/synchub"})
			if err != nil {
				t.Fatal(err)
			}
			pushed, err := random.Index(100, 1, 2)
			if err != nil {
				t.Fatal(err)
			}
			if err := push(t.Context(), pushed, s.push); err != nil {
				t.Fatal(err)
			}
			if err := pushSBOMs(t.Context(), pushed, s.metadata, sboms, s.push.Context()); err != nil {
				t.Fatal(err)
			}
			checkSBOMs(t, s.push.Context().Digest(digest(t, pushed)), sboms)
		})
	}
}

// checkSBOMs compares the SBOMs that refer to an image with those wanted.
func checkSBOMs(t *testing.T, image name.Digest, want []sbom) {
	t.Helper()
	index, err := remote.Referrers(image, remote.WithFilter("artifactType", string(spdxType)))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var documents []string
	for _, one := range manifest.Manifests {
		artifact, err := remote.Image(image.Context().Digest(one.Digest.String()))
		if err != nil {
			t.Fatal(err)
		}
		content, err := artifact.Layers()
		if err != nil || len(content) != 1 || one.ArtifactType != string(spdxType) {
			t.Fatalf("%+v has %v: %v", one, content, err)
		}
		reader, err := content[0].Compressed()
		if err != nil {
			t.Fatal(err)
		}
		document, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, string(document))
	}
	slices.Sort(documents)
	if len(documents) != len(want) || documents[0] != string(want[0].document) || documents[1] != string(want[1].document) {
		t.Errorf("the image has %q", documents)
	}
}

func TestReproducible(t *testing.T) {
	digest := v1.Hash{Algorithm: "sha256", Hex: "0123"}
	var made []string
	for _, document := range []string{
		`{"name": "synchub", "documentNamespace": "https://example.org/1", "creationInfo": {"created": "2027-01-01T00:00:00Z", "creators": ["Tool: syft"]}, "packages": []}`,
		`{"name": "synchub", "documentNamespace": "https://example.org/2", "creationInfo": {"created": "2027-01-02T00:00:00Z", "creators": ["Tool: syft"]}, "packages": []}`,
	} {
		result, err := reproducible([]byte(document), of, digest)
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, string(result))
	}
	if made[0] != made[1] || !strings.Contains(made[0], `"created": "2026-02-03T03:05:06Z"`) || !strings.Contains(made[0], `sbom/0123"`) || !strings.Contains(made[0], "Tool: syft") {
		t.Errorf("one is %s, the other %s", made[0], made[1])
	}
	for _, document := range []string{"", "{}"} {
		if _, err := reproducible([]byte(document), of, digest); err == nil || !strings.Contains(err.Error(), "SPDX") {
			t.Errorf("%q: %v", document, err)
		}
	}
}

func imageFor(t *testing.T, index v1.ImageIndex) v1.Image {
	t.Helper()
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range manifest.Manifests {
		if one.Platform != nil && one.Platform.Equals(host) {
			image, err := index.Image(one.Digest)
			if err != nil {
				t.Fatal(err)
			}
			return image
		}
	}
	text, _ := json.Marshal(manifest)
	t.Fatalf("no image for %s: %s", host, text)
	return nil
}

func digest(t *testing.T, index v1.ImageIndex) string {
	t.Helper()
	hash, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return hash.String()
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
