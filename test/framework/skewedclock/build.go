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

package skewedclock

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/synchub-dev/synchub/test/framework"
)

const (
	// readsClock is the line of the standard library with which each wall clock time begins, and shiftsIt the line after it.
	readsClock = "\tsec, nsec, mono := runtimeNow()\n"
	shiftsIt   = "\tsec += int64(clockOffset)\n"
	// declarations are added to the file. The linker sets the text; atoi is a function of package time.
	declarations = "\nvar clockOffsetText string\n\nvar clockOffset, _ = atoi(clockOffsetText)\n"
)

// Build builds a program of this repository, such as ./cmd/synchub, to a path. To its time.Now an offset is added, in whole seconds; its
// timers are right. The first build takes minutes, since everything is compiled again.
func Build(ctx context.Context, program, path string, offset time.Duration) error {
	root, err := framework.RepositoryRoot()
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "skewedclock-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder) //nolint:errcheck // it is a temporary folder
	overlay, err := writeOverlay(ctx, folder)
	if err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-overlay", overlay, "-o", path,
		"-ldflags", fmt.Sprintf("-X time.clockOffsetText=%d", int64(offset.Seconds())), program)
	build.Dir = root
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s with another clock: %w\n%s", program, err, bytes.TrimSpace(output))
	}
	return nil
}

// writeOverlay writes the changed file of the standard library, and the file that makes the compiler use it, whose path it returns.
func writeOverlay(ctx context.Context, folder string) (string, error) {
	goRoot, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("find the standard library: %w", err)
	}
	original := filepath.Join(string(bytes.TrimSpace(goRoot)), "src", "time", "time.go")
	text, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	before, after, found := strings.Cut(string(text), readsClock)
	if !found || strings.Contains(after, readsClock) {
		return "", fmt.Errorf("%s does not read the clock in one place, with %q", original, strings.TrimSpace(readsClock))
	}
	encoded, err := json.Marshal(map[string]map[string]string{"Replace": {original: filepath.Join(folder, "time.go")}})
	if err != nil {
		return "", err
	}
	files, err := os.OpenRoot(folder)
	if err != nil {
		return "", err
	}
	err = errors.Join(
		files.WriteFile("time.go", []byte(before+readsClock+shiftsIt+after+declarations), 0o600),
		files.WriteFile("overlay.json", encoded, 0o600),
		files.Close(),
	)
	return filepath.Join(folder, "overlay.json"), err
}
