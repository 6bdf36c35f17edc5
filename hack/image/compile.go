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
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// programs are those of the image, all below cmd.
var programs = []string{"synchub", "kubectl-synchub"}

// compile builds the programs of a source tree for a platform: static, and without paths of this machine.
func compile(ctx context.Context, source, dir string, platform v1.Platform, ldflags string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, program := range programs {
		command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", ldflags, "-o", filepath.Join(dir, program), "./cmd/"+program)
		command.Dir = source
		command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+platform.OS, "GOARCH="+platform.Architecture)
		command.Stdout, command.Stderr = os.Stderr, os.Stderr
		if err := command.Run(); err != nil {
			return fmt.Errorf("build %s for %s: %w", program, platform, err)
		}
	}
	return nil
}
