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
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// writeLayout replaces a directory by an OCI layout with the index. Tools find it by the version.
func writeLayout(dir string, index v1.ImageIndex, of metadata) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	to, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	return to.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": of.version}))
}

// writeArchive writes the files of a layout to an archive.
func writeArchive(path, dir string, modified time.Time) (err error) {
	var all []file
	in := os.DirFS(dir)
	err = fs.WalkDir(in, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		if entry.IsDir() {
			all = append(all, file{name: name + "/", mode: os.ModeDir | 0o755})
			return nil
		}
		content, err := fs.ReadFile(in, name)
		all = append(all, file{name: name, mode: 0o644, content: content})
		return err
	})
	if err != nil {
		return err
	}
	to, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	return writeTar(to, all, modified)
}

// push pushes the index, with the credentials that Docker and podman have.
func push(ctx context.Context, index v1.ImageIndex, to name.Reference) error {
	if err := remote.WriteIndex(to, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return fmt.Errorf("push %s: %w", to.Name(), err)
	}
	return nil
}
