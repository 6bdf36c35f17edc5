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

// Command verifyheaders fails unless every Go file of the repository starts with the licence header in
// hack/boilerplate.go.txt. Only a build constraint, which code generators write first, may precede the header.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

const headerFile = "hack/boilerplate.go.txt"

func main() {
	if err := verify(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "verifyheaders:", err)
		os.Exit(1)
	}
}

func verify(ctx context.Context) error {
	header, err := os.ReadFile(headerFile)
	if err != nil {
		return fmt.Errorf("run this in the root of the repository: %w", err)
	}
	files, err := goFiles(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, file := range files {
		content, err := os.ReadFile(file)
		switch {
		case errors.Is(err, os.ErrNotExist): // git still lists a file that was just deleted
		case err != nil:
			errs = append(errs, err)
		case !hasHeader(content, header):
			errs = append(errs, fmt.Errorf("%s does not start with the text of %s", file, headerFile))
		}
	}
	return errors.Join(errs...)
}

// goFiles lists the Go files that git tracks or would add.
func goFiles(ctx context.Context) ([]string, error) {
	output, err := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.go").Output()
	if err != nil {
		return nil, fmt.Errorf("list the files of the repository: %w", err)
	}
	return strings.FieldsFunc(string(output), func(r rune) bool { return r == 0 }), nil
}

func hasHeader(content, header []byte) bool {
	if bytes.HasPrefix(content, []byte("//go:build ")) {
		_, content, _ = bytes.Cut(content, []byte("\n"))
		content = bytes.TrimLeft(content, "\n")
	}
	return bytes.HasPrefix(content, append(bytes.TrimSpace(header), '\n'))
}
