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
	"encoding/pem"
	"io"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	// programDir is where the image has its programs.
	programDir = "usr/local/bin"
	// rootsFile is where Go and most other programs look for root certificates.
	rootsFile = "etc/ssl/certs/ca-certificates.crt"
	// userID is the number that other images use for a user without rights, too.
	userID = 65532
)

// file is a file, or a directory if its content is nil and its mode says so.
type file struct {
	name    string
	mode    os.FileMode
	content []byte
}

// files returns the files of the image, with the programs of a directory.
func files(programsIn string) ([]file, error) {
	all := []file{
		{name: "etc/", mode: os.ModeDir | 0o755},
		{name: "etc/passwd", mode: 0o644, content: []byte("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n")},
		{name: "etc/group", mode: 0o644, content: []byte("root:x:0:\nnonroot:x:65532:\n")},
		{name: "etc/ssl/", mode: os.ModeDir | 0o755},
		{name: "etc/ssl/certs/", mode: os.ModeDir | 0o755},
		{name: rootsFile, mode: 0o644, content: roots()},
		{name: "tmp/", mode: os.ModeDir | os.ModeSticky | 0o777},
		{name: "usr/", mode: os.ModeDir | 0o755},
		{name: "usr/local/", mode: os.ModeDir | 0o755},
		{name: programDir + "/", mode: os.ModeDir | 0o755},
	}
	for _, program := range programs {
		content, err := os.ReadFile(filepath.Join(programsIn, program))
		if err != nil {
			return nil, err
		}
		all = append(all, file{name: programDir + "/" + program, mode: 0o755, content: content})
	}
	return all, nil
}

// roots returns the root certificates of Mozilla, as the Go project publishes them, in PEM. Those with constraints that PEM cannot
// express are left out.
func roots() []byte {
	var text bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			// Writing to a buffer does not fail.
			_ = pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return text.Bytes()
}

// newLayer returns a layer of files. It has the same bytes whenever and wherever it is made: all files have the same owner and time.
func newLayer(files []file, modified time.Time) (v1.Layer, error) {
	var content bytes.Buffer
	if err := writeTar(&content, files, modified); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
}

// writeTar writes files that belong to root.
func writeTar(to io.Writer, files []file, modified time.Time) error {
	archive := tar.NewWriter(to)
	for _, one := range files {
		header := &tar.Header{Name: one.name, Mode: int64(one.mode.Perm()), Size: int64(len(one.content)), ModTime: modified.UTC().Truncate(time.Second), Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		if one.mode.IsDir() {
			header.Typeflag = tar.TypeDir
		}
		if one.mode&os.ModeSticky != 0 {
			// As in the mode of a Unix file.
			header.Mode |= 0o1000
		}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(one.content); err != nil {
			return err
		}
	}
	return archive.Close()
}
