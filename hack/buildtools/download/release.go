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
	"context"
	"fmt"
	"os"
	"path"
)

// Release is a program as its project publishes it for one platform.
type Release struct {
	// Program is the name of the program, also in an archive.
	Program string
	// URL is the address of the program, or of an archive with it: a .tar.gz or .zip file.
	URL string
	// ChecksumURL is the address of a file with the SHA-256 checksum of what URL has, and ReadChecksum reads it.
	ChecksumURL  string
	ReadChecksum ChecksumReader
}

func (r Release) file() string { return path.Base(r.URL) }

// Install writes the program of a release to a file that can be executed. It changes an existing file only after a
// success, by a rename. Without pins it trusts the checksum that the project publishes.
func (c Client) Install(ctx context.Context, release Release, pins Pins, destination string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.Timeout, fmt.Errorf("it took longer than %s", c.Timeout))
	defer cancel()
	checksum, err := c.expected(ctx, release, pins)
	if err != nil {
		return err
	}
	fetched := fmt.Sprintf("%s.%d.download", destination, os.Getpid())
	defer os.Remove(fetched) //nolint:errcheck // if it cannot be removed, it is just a leftover in bin/
	actual, err := c.save(ctx, release.URL, fetched)
	if err != nil {
		return err
	}
	if actual != checksum {
		return fmt.Errorf("%s has the SHA-256 checksum %s, expected is %s from %s", release.URL, actual, checksum, pins.origin(release))
	}
	program := fmt.Sprintf("%s.%d.new", destination, os.Getpid())
	defer os.Remove(program) //nolint:errcheck // after a success it is not there any more
	if err := c.unpack(release, fetched, program); err != nil {
		return fmt.Errorf("unpack %s: %w", release.URL, err)
	}
	if err := os.Rename(program, destination); err != nil {
		return fmt.Errorf("install %s: %w", release.Program, err)
	}
	return nil
}

// expected returns the pinned checksum or, if there are no pins at all, the published one.
func (c Client) expected(ctx context.Context, release Release, pins Pins) (string, error) {
	if pins != nil {
		return pins.checksum(release)
	}
	return c.Published(ctx, release)
}

// Published returns the checksum that the project publishes with a release.
func (c Client) Published(ctx context.Context, release Release) (string, error) {
	content, err := c.read(ctx, release.ChecksumURL)
	if err != nil {
		return "", err
	}
	checksum, err := release.ReadChecksum(content, release.file())
	if err != nil {
		return "", fmt.Errorf("%s: %w", release.ChecksumURL, err)
	}
	return checksum, nil
}
