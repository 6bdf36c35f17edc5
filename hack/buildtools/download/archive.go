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

package download

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// unpack writes the program in a downloaded file to a file that can be executed.
func (c Client) unpack(release Release, from, to string) (err error) {
	program, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755) //nolint:gosec // a program must be executable
	if err != nil {
		return fmt.Errorf("create the program: %w", err)
	}
	defer func() { err = errors.Join(err, program.Close()) }()
	switch {
	case strings.HasSuffix(release.URL, ".tar.gz"):
		return c.untar(release.Program, from, program)
	case strings.HasSuffix(release.URL, ".zip"):
		return c.unzip(release.Program, from, program)
	default:
		file, err := os.Open(from)
		if err != nil {
			return err
		}
		defer file.Close() //nolint:errcheck // it was only read
		return copyUpTo(program, file, c.MaxFile)
	}
}

func (c Client) untar(program, archive string, to io.Writer) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it was only read
	content, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	reader := tar.NewReader(content)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return missing(program)
		}
		if err != nil {
			return err
		}
		found, err := isProgram(header.Name, program)
		if err != nil {
			return err
		}
		if found && header.Typeflag == tar.TypeReg {
			return copyUpTo(to, reader, c.MaxFile)
		}
	}
}

func (c Client) unzip(program, archive string, to io.Writer) error {
	reader, err := zip.OpenReader(archive)
	if err != nil {
		return err
	}
	defer reader.Close() //nolint:errcheck // it was only read
	for _, file := range reader.File {
		found, err := isProgram(file.Name, program)
		if err != nil {
			return err
		}
		if !found || !file.Mode().IsRegular() {
			continue
		}
		content, err := file.Open()
		if err != nil {
			return err
		}
		defer content.Close() //nolint:errcheck // it was only read
		return copyUpTo(to, content, c.MaxFile)
	}
	return missing(program)
}

// isProgram reports whether an entry of an archive has the name of the program, in any directory. No entry is written
// under its own name; one that points outside the archive shows that the archive is not what the project built.
func isProgram(entry, program string) (bool, error) {
	if !filepath.IsLocal(filepath.FromSlash(entry)) {
		return false, fmt.Errorf("its entry %q is outside of the archive", entry)
	}
	return path.Base(entry) == program, nil
}

func missing(program string) error { return fmt.Errorf("there is no program %s in it", program) }
