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

// Command verifywords fails if the code declares a name with a word of words.txt. These words belong to no vocabulary that
// Kubernetes engineers share; the file has the word to use for each.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"strings"
)

const listFile = "hack/verifywords/words.txt"

//go:embed words.txt
var wordsFile string

func main() {
	refused, err := verify(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, "verifywords:", err)
		os.Exit(1)
	}
	if len(refused) > 0 {
		fmt.Fprintln(os.Stderr, errors.Join(refused...))
		fmt.Fprintf(os.Stderr, "verifywords: %d names to change; the list of words is %s\n", len(refused), listFile)
		os.Exit(1)
	}
}

// verify returns one error for each name with a listed word. The second error means that it could not check all files.
func verify(ctx context.Context) (refused []error, err error) {
	words, err := parseVocabulary(wordsFile)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", listFile, err)
	}
	paths, err := goFiles(ctx)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) { // git still lists a file that was just deleted
			continue
		}
		if err != nil {
			return nil, err
		}
		refused = append(refused, words.check(pathNames(path, seen))...)
		inFile, err := words.checkFile(path, content)
		if err != nil {
			return nil, err
		}
		refused = append(refused, inFile...)
	}
	return refused, nil
}

// goFiles lists the Go files that git knows or would add.
func goFiles(ctx context.Context) ([]string, error) {
	output, err := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.go").Output()
	if err != nil {
		return nil, fmt.Errorf("list the files of the repository: %w", err)
	}
	return strings.FieldsFunc(string(output), func(r rune) bool { return r == 0 }), nil
}

// checkFile returns one error for each declaration in the file with a listed word. The second error means that the file is
// no Go code.
func (v *vocabulary) checkFile(path string, content []byte) ([]error, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, content, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parse the code: %w", err)
	}
	return v.check(declaredNames(files, file)), nil
}
