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
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// pinned is a tool with all inputs that determine its binary.
type pinned struct {
	tool
	version string
	flags   string
	// pin is a hash of the module's go.mod and go.sum and of the build flags.
	pin string
}

// pinTool reads the module of a tool.
func pinTool(toolsDir string, t tool) (pinned, error) {
	hash := sha256.New()
	var goMod string
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(toolsDir, t.dir, name))
		if err != nil {
			return pinned{}, fmt.Errorf("read the pin of %s: %w", t.name, err)
		}
		if name == "go.mod" {
			goMod = string(content)
		}
		fmt.Fprintf(hash, "%s %d\n%s", name, len(content), content)
	}
	version := requiredVersion(goMod, t.pkg)
	if version == "" {
		return pinned{}, fmt.Errorf("read the pin of %s: %s/go.mod requires no module that contains %s", t.name, t.dir, t.pkg)
	}
	p := pinned{tool: t, version: version, flags: t.ldflags(version)}
	fmt.Fprintf(hash, "%s\n%s", p.pkg, p.flags)
	p.pin = hex.EncodeToString(hash.Sum(nil))
	return p, nil
}

// requiredVersion returns the version that a go.mod file requires of the module that contains a package, or "".
func requiredVersion(goMod, pkg string) string {
	for line := range strings.Lines(goMod) {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(fields) >= 2 && strings.HasPrefix(pkg+"/", fields[0]+"/") && strings.HasPrefix(fields[1], "v") {
			return fields[1]
		}
	}
	return ""
}

func (p pinned) binary(binDir string) string  { return filepath.Join(binDir, p.name) }
func (p pinned) pinFile(binDir string) string { return filepath.Join(binDir, "."+p.name+".pin") }

// isCurrent reports whether the binary exists and was built from this pin.
func (p pinned) isCurrent(binDir string) (bool, error) {
	if _, err := os.Stat(p.binary(binDir)); err != nil {
		return false, ignoreAbsence(err)
	}
	built, err := os.ReadFile(p.pinFile(binDir))
	if err != nil {
		return false, ignoreAbsence(err)
	}
	return strings.TrimSpace(string(built)) == p.pin, nil
}

// recordInstalled records the pin of a binary that was built or downloaded. The caller calls it once the binary is in
// place: an interruption between the two causes a needless build, but never a stale binary that counts as current.
func (p pinned) recordInstalled(binDir string) error {
	return os.WriteFile(p.pinFile(binDir), []byte(p.pin+"\n"), 0o644)
}

func ignoreAbsence(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
