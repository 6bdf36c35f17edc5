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

package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
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
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"sigs.k8s.io/yaml"
)

const (
	root    = "../.."
	userID  = 65532
	version = "v0.0.0-test"
	tag     = "0.0.0-test"
	commit  = "0123abcd"
	date    = "2026-02-03T04:05:06+01:00"
)

// TestBase compares the base with the one that .ko.yaml names.
func TestBase(t *testing.T) {
	var config struct {
		DefaultBaseImage string   `json:"defaultBaseImage"`
		DefaultPlatforms []string `json:"defaultPlatforms"`
	}
	if err := yaml.Unmarshal(read(t, filepath.Join(root, ".ko.yaml")), &config); err != nil {
		t.Fatal(err)
	}
	all, err := layout.ImageIndexFromPath("base")
	if err != nil {
		t.Fatal(err)
	}
	_, digest, _ := strings.Cut(config.DefaultBaseImage, "@")
	hash, err := v1.NewHash(digest)
	if err != nil {
		t.Fatal(err)
	}
	base, err := all.ImageIndex(hash)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(base); err != nil {
		t.Error(err)
	}
	manifest, err := base.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, one := range manifest.Manifests {
		platforms = append(platforms, one.Platform.String())
		// ko finds an image of the index in the layout only.
		image, err := all.Image(one.Digest)
		if err != nil {
			t.Fatal(err)
		}
		if layers, err := image.Layers(); err != nil || len(layers) > 0 {
			t.Errorf("the base for %s has %d layers: %v", one.Platform, len(layers), err)
		}
	}
	if want := []string{"linux/amd64", "linux/arm64"}; !slices.Equal(platforms, want) || !slices.Equal(config.DefaultPlatforms, want) {
		t.Errorf("the base is for %v, and images are made for %v, want %v", platforms, config.DefaultPlatforms, want)
	}
}

// TestImages makes the images for this platform twice, and pushes them to a registry on loopback the second time. Another platform would
// take as long again.
func TestImages(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	project := strings.TrimPrefix(server.URL, "http://") + "/synchub-dev"
	one, two := makeImages(t, "one"), makeImages(t, "two", "PUSH="+project)
	for program, showVersion := range map[string]string{"synchub": "version", "synchub-tunnel": "--version"} {
		t.Run(program, func(t *testing.T) {
			image := imageIn(t, filepath.Join(one, program))
			if again := imageIn(t, filepath.Join(two, program)); digestOf(t, again) != digestOf(t, image) {
				t.Errorf("the same commit makes %s, and then %s", digestOf(t, image), digestOf(t, again))
			}
			checkConfig(t, image, program)
			checkProgram(t, image, showVersion)
			checkSBOM(t, filepath.Join(one, program+"-linux-"+runtime.GOARCH+".spdx.json"))
			pushed := project + "/" + program + ":" + tag
			checkPushed(t, pushed, image)
			ref := string(read(t, filepath.Join(two, program+".ref")))
			if want := pushed + "@" + digestOf(t, image); strings.TrimSpace(ref) != want {
				t.Errorf("make names %s, want %s", ref, want)
			}
		})
	}
}

// makeImages runs make, and returns the directory with the images. ko accepts names of directories as names of images only.
func makeImages(t *testing.T, name string, more ...string) string {
	t.Helper()
	dir := "dist/test-image/" + name
	args := append([]string{"-C", root, "image", "IMAGE_DIR=" + dir, "PLATFORMS=linux/" + runtime.GOARCH, "VERSION=" + version, "COMMIT=" + commit, "DATE=" + date, fmt.Sprintf("EPOCH=%d", created(t).Unix())}, more...)
	if out, err := exec.CommandContext(t.Context(), "make", args...).CombinedOutput(); err != nil {
		t.Fatalf("make %v: %v\n%s", args, err, out)
	}
	return filepath.Join(root, dir)
}

// created returns the time of the commit.
func created(t *testing.T) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339, date)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// imageIn reads a layout as other tools do.
func imageIn(t *testing.T, dir string) v1.Image {
	t.Helper()
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("%+v, %v", manifest, err)
	}
	image, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func checkConfig(t *testing.T, image v1.Image, program string) {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != "65532:65532" || config.Architecture != runtime.GOARCH || !config.Created.Equal(created(t)) || !strings.HasSuffix(config.Config.Entrypoint[0], "/"+program) {
		t.Errorf("the configuration is %+v", config)
	}
	manifest, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	for label, want := range map[string]string{"title": program, "version": version, "revision": commit, "created": date, "licenses": "Apache-2.0"} {
		label = "org.opencontainers.image." + label
		if config.Config.Labels[label] != want || manifest.Annotations[label] != want {
			t.Errorf("%s is %q as a label and %q as an annotation, want %q", label, config.Config.Labels[label], manifest.Annotations[label], want)
		}
	}
}

// checkProgram unpacks an image, and runs its program there as its user.
func checkProgram(t *testing.T, image v1.Image, argument string) {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	unpacked := t.TempDir()
	unpack(t, image, unpacked)
	command := exec.CommandContext(t.Context(), config.Config.Entrypoint[0], argument)
	command.Env, command.Dir = config.Config.Env, config.Config.WorkingDir
	command.SysProcAttr = &syscall.SysProcAttr{Chroot: unpacked, Credential: &syscall.Credential{Uid: userID, Gid: userID}}
	if os.Geteuid() != 0 {
		// A user who is not root is root in a namespace of users.
		command.SysProcAttr = &syscall.SysProcAttr{
			Chroot: unpacked, Cloneflags: syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
		}
	}
	if out, err := command.CombinedOutput(); err != nil || !strings.Contains(string(out), version) {
		t.Errorf("%v: %v: %s", config.Config.Entrypoint, err, out)
	}
}

// unpack writes the files of an image below a directory.
func unpack(t *testing.T, image v1.Image, to string) {
	t.Helper()
	content := mutate.Extract(image)
	defer func() { _ = content.Close() }()
	for archive := tar.NewReader(content); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Uid != 0 || header.Gid != 0 || header.Mode&0o222 != 0 && header.Typeflag == tar.TypeReg {
			t.Errorf("%s belongs to %d:%d and has the mode %o", header.Name, header.Uid, header.Gid, header.Mode)
		}
		path := filepath.Join(to, filepath.Clean("/"+header.Name))
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
}

// checkSBOM reads the SBOM of an image: the image has only the root certificates of this module.
func checkSBOM(t *testing.T, file string) {
	t.Helper()
	if content := read(t, file); !bytes.Contains(content, []byte("SPDX-2")) || !bytes.Contains(content, []byte("golang.org/x/crypto/x509roots/fallback")) {
		t.Errorf("%s does not list the root certificates", file)
	}
}

// checkPushed pulls an image and its SBOM, where cosign looks for it.
func checkPushed(t *testing.T, ref string, want v1.Image) {
	t.Helper()
	pushed, err := name.ParseReference(ref)
	if err != nil {
		t.Fatal(err)
	}
	found, err := remote.Head(pushed)
	if err != nil {
		t.Fatal(err)
	}
	if found.Digest.String() != digestOf(t, want) {
		t.Errorf("%s has %s, and %s was pushed", ref, found.Digest, digestOf(t, want))
	}
	if _, err := remote.Head(pushed.Context().Tag(strings.Replace(found.Digest.String(), ":", "-", 1) + ".sbom")); err != nil {
		t.Errorf("%s has no SBOM: %v", ref, err)
	}
}

func digestOf(t *testing.T, image v1.Image) string {
	t.Helper()
	hash, err := image.Digest()
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
