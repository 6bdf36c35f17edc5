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
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// ChecksumReader returns the SHA-256 checksum of a file of a release from the content of a checksum file.
type ChecksumReader func(content []byte, file string) (string, error)

// Single reads a file that contains one checksum and nothing else.
func Single(content []byte, _ string) (string, error) {
	return valid(strings.TrimSpace(string(content)))
}

// List reads the output of sha256sum: a checksum and the name of a file in each line.
func List(content []byte, file string) (string, error) {
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		// An asterisk before the name means that the file was read in binary mode.
		if len(fields) == 2 && strings.TrimPrefix(fields[1], "*") == file {
			return valid(fields[0])
		}
	}
	return "", fmt.Errorf("it has no checksum of %s", file)
}

// GitHubRelease reads a release as GitHub's API returns it. GitHub computes the checksum of every uploaded file, also
// for projects that publish none.
func GitHubRelease(content []byte, file string) (string, error) {
	var release struct {
		Assets []struct {
			Name   string `json:"name"`
			Digest string `json:"digest"`
		} `json:"assets"`
	}
	if err := json.Unmarshal(content, &release); err != nil {
		return "", fmt.Errorf("read a release of GitHub: %w", err)
	}
	for _, asset := range release.Assets {
		if checksum, ok := strings.CutPrefix(asset.Digest, "sha256:"); ok && asset.Name == file {
			return valid(checksum)
		}
	}
	return "", fmt.Errorf("it has no checksum of %s", file)
}

var errNoChecksum = errors.New("it is not a SHA-256 checksum")

func valid(checksum string) (string, error) {
	decoded, err := hex.DecodeString(checksum)
	if err != nil || len(decoded) != sha256.Size {
		return "", fmt.Errorf("%.80q: %w", checksum, errNoChecksum)
	}
	return strings.ToLower(checksum), nil
}
