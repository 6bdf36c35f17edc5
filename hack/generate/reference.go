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
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
)

const (
	crdRefDocs = "bin/crd-ref-docs"
	// templatesPath has the configuration of crd-ref-docs and the templates of the pages.
	templatesPath = "hack/generate/reference"
	referencePath = "docs/reference"
)

// blankLines are left by the templates: the renderer cannot trim around its own loops.
var blankLines = regexp.MustCompile(`\n{3,}`)

// generateReference returns a page of reference for each API group, by file name. Two types of different groups have
// the same name, so one page for all could not link to each.
func generateReference(ctx context.Context) (map[string][]byte, error) {
	pages, err := collect(func(directory string) error {
		command := exec.CommandContext(ctx, crdRefDocs, "--source-path=./apis", "--renderer=markdown",
			"--config="+filepath.Join(templatesPath, "config.yaml"), "--templates-dir="+templatesPath,
			"--output-mode=group", "--output-path="+directory, "--log-level=ERROR")
		command.Stdout, command.Stderr = os.Stdout, os.Stderr
		if err := command.Run(); err != nil {
			return fmt.Errorf("running %s (make builds it): %w", crdRefDocs, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for name, page := range pages {
		pages[name] = append(bytes.TrimSpace(blankLines.ReplaceAll(page, []byte("\n\n"))), '\n')
	}
	return pages, nil
}

// writeReference writes the pages of the API groups. Other pages of reference are beside them.
func writeReference(pages map[string][]byte) error {
	if err := os.MkdirAll(referencePath, 0o755); err != nil {
		return fmt.Errorf("making %s: %w", referencePath, err)
	}
	var errs []error
	for name, page := range pages {
		errs = append(errs, writeIfChanged(filepath.Join(referencePath, name), page))
	}
	return errors.Join(errs...)
}
