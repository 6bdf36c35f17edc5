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
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// spdxType is the media type of an SPDX document in JSON. Tools find the SBOMs of an image by it.
const spdxType = types.MediaType("application/spdx+json")

// sbom is the SPDX document of the image of one platform.
type sbom struct {
	platform v1.Platform
	document []byte
}

func (s sbom) fileName() string {
	return "synchub-" + s.platform.OS + "-" + s.platform.Architecture + ".spdx.json"
}

// scan returns the SBOM of the image of a platform. syft is the path of the program.
func scan(ctx context.Context, syft string, of metadata, one platformImage) (sbom, error) {
	dir, err := os.MkdirTemp("", "synchub-sbom-")
	if err != nil {
		return sbom{}, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is a temporary directory
	// syft reads layouts with a single image only.
	to, err := layout.Write(dir, empty.Index)
	if err != nil {
		return sbom{}, err
	}
	if err := to.AppendImage(one.image); err != nil {
		return sbom{}, err
	}
	command := exec.CommandContext(ctx, syft, "scan", "oci-dir:"+dir, "--quiet", "--output", "spdx-json", "--source-name", "synchub", "--source-version", of.version)
	command.Env = append(os.Environ(), "SYFT_CHECK_FOR_APP_UPDATE=false", "SYFT_GOLANG_SEARCH_LOCAL_MOD_CACHE_LICENSES=true")
	command.Stderr = os.Stderr
	document, err := command.Output()
	if err != nil {
		return sbom{}, fmt.Errorf("list the modules of the image for %s: %w", one.platform, err)
	}
	digest, err := one.image.Digest()
	if err != nil {
		return sbom{}, err
	}
	document, err = reproducible(document, of, digest)
	return sbom{one.platform, document}, err
}

// reproducible replaces the fields of an SPDX document that differ with each run of syft: the time by that of the commit, and
// the random namespace by one made of the digest of the image.
func reproducible(document []byte, of metadata, digest v1.Hash) ([]byte, error) {
	var content map[string]any
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	if err := decoder.Decode(&content); err != nil {
		return nil, fmt.Errorf("read the SPDX document: %w", err)
	}
	creation, ok := content["creationInfo"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("read the SPDX document: it has no creationInfo")
	}
	creation["created"] = of.created.UTC().Format(time.RFC3339)
	content["documentNamespace"] = "https://github.com/synchub-dev/synchub/sbom/" + digest.Hex
	return json.MarshalIndent(content, "", " ")
}

// writeSBOMs writes SBOMs into a directory, and returns their paths.
func writeSBOMs(dir string, sboms []sbom) ([]string, error) {
	paths := make([]string, len(sboms))
	for i, one := range sboms {
		paths[i] = filepath.Join(dir, one.fileName())
		if err := os.WriteFile(paths[i], append(one.document, '\n'), 0o644); err != nil {
			return nil, err
		}
	}
	return paths, nil
}

// artifactOf returns an artifact with an SBOM that refers to an image index.
func artifactOf(index v1.ImageIndex, of metadata, one sbom) (v1.Image, error) {
	digest, err := index.Digest()
	if err != nil {
		return nil, err
	}
	size, err := index.Size()
	if err != nil {
		return nil, err
	}
	// A manifest without artifactType is of the type that its configuration has.
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), spdxType)
	artifact, err := mutate.Append(base, mutate.Addendum{
		Layer:       static.NewLayer(one.document, spdxType),
		Annotations: map[string]string{"org.opencontainers.image.title": one.fileName()},
	})
	if err != nil {
		return nil, err
	}
	artifact = mutate.Annotations(artifact, map[string]string{
		"org.opencontainers.image.created": of.created.UTC().Format(time.RFC3339),
		"org.opencontainers.image.title":   "SBOM of synchub for " + one.platform.String(),
	}).(v1.Image)
	return mutate.Subject(artifact, v1.Descriptor{MediaType: types.OCIImageIndex, Digest: digest, Size: size}).(v1.Image), nil
}

// pushSBOMs pushes the SBOMs of an index, beside it. Layouts have none: tools that read a layout expect one image.
func pushSBOMs(ctx context.Context, index v1.ImageIndex, of metadata, sboms []sbom, beside name.Repository) error {
	for _, one := range sboms {
		artifact, err := artifactOf(index, of, one)
		if err != nil {
			return err
		}
		digest, err := artifact.Digest()
		if err != nil {
			return err
		}
		if err := remote.Write(beside.Digest(digest.String()), artifact, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
			return fmt.Errorf("push the SBOM for %s: %w", one.platform, err)
		}
	}
	return nil
}
