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
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
)

// Pins are checksums by URL. They replace those that projects publish: a release that is changed later is not installed.
type Pins map[string]string

// ReadPins reads a file in the format of sha256sum, with URLs in place of names. It returns nil if there is no file.
func ReadPins(file string) (Pins, error) {
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the pinned checksums: %w", err)
	}
	pins := Pins{}
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		if len(fields) != 2 {
			return nil, fmt.Errorf("read the pinned checksums: %s: %q is not a checksum and a URL", file, strings.TrimSpace(line))
		}
		checksum, err := valid(fields[0])
		if err != nil {
			return nil, fmt.Errorf("read the pinned checksums: %s: %w", file, err)
		}
		pins[fields[1]] = checksum
	}
	return pins, nil
}

// Write replaces the file that ReadPins reads.
func (p Pins) Write(file string) error {
	var text strings.Builder
	for _, url := range slices.Sorted(maps.Keys(p)) {
		fmt.Fprintf(&text, "%s  %s\n", p[url], url)
	}
	if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
		return fmt.Errorf("write the pinned checksums: %w", err)
	}
	return nil
}

// checksum returns the checksum of a release. A file of pins without it was not updated with the version of the tool.
func (p Pins) checksum(release Release) (string, error) {
	checksum, ok := p[release.URL]
	if !ok {
		return "", fmt.Errorf("no checksum is pinned for %s", release.URL)
	}
	return checksum, nil
}

// origin names where the checksum of a release is from.
func (p Pins) origin(release Release) string {
	if p != nil {
		return "the pinned checksums"
	}
	return release.ChecksumURL
}
