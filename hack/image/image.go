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
	"strconv"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// metadata says what the image is of.
type metadata struct {
	version, revision string
	// created is the time of the commit, so that the same commit always makes the same image.
	created time.Time
}

// labels returns the annotations of the OCI image specification, which are the labels of the image too.
func (m metadata) labels() map[string]string {
	const of = "org.opencontainers.image."
	return map[string]string{
		of + "title":       "synchub",
		of + "description": "Keeps target clusters in sync with their kcp mailbox workspaces, without an agent in any of them.",
		of + "version":     m.version,
		of + "revision":    m.revision,
		of + "created":     m.created.UTC().Format(time.RFC3339),
		of + "source":      "https://github.com/synchub-dev/synchub",
		of + "licenses":    "Apache-2.0",
	}
}

// platformImage is the image of one platform.
type platformImage struct {
	platform v1.Platform
	image    v1.Image
}

// newImage returns the image of a platform, with the programs of a directory.
func newImage(programsIn string, platform v1.Platform, of metadata) (v1.Image, error) {
	content, err := files(programsIn)
	if err != nil {
		return nil, err
	}
	layer, err := newLayer(content, of.created)
	if err != nil {
		return nil, err
	}
	created := v1.Time{Time: of.created.UTC()}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.Append(base, mutate.Addendum{Layer: layer, History: v1.History{Created: created, CreatedBy: "hack/image", Comment: "synchub " + of.version}})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Variant, config.Created = platform.OS, platform.Architecture, platform.Variant, created
	config.Config = v1.Config{
		User:       strconv.Itoa(userID) + ":" + strconv.Itoa(userID),
		Env:        []string{"PATH=/" + programDir, "SSL_CERT_FILE=/" + rootsFile},
		Entrypoint: []string{"/" + programDir + "/" + programs[0]},
		WorkingDir: "/",
		Labels:     of.labels(),
	}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return nil, err
	}
	return mutate.Annotations(image, of.labels()).(v1.Image), nil
}

// newIndex returns the index of the images of all platforms.
func newIndex(images []platformImage, of metadata) v1.ImageIndex {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, one := range images {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: one.image, Descriptor: v1.Descriptor{Platform: &one.platform}})
	}
	return mutate.Annotations(index, of.labels()).(v1.ImageIndex)
}
