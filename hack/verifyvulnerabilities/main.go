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

// Command verifyvulnerabilities fails if the project's programs call code with known vulnerabilities. It runs the
// pinned govulncheck, which queries the Go vulnerability database. If the database is unreachable, the command
// reports that nothing was checked and succeeds, so that `make verify` works without internet access.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := verify(ctx)
	stop()
	switch {
	case errors.Is(err, errNotChecked):
		fmt.Println("verifyvulnerabilities:", err)
	case err != nil:
		fmt.Fprintln(os.Stderr, "verifyvulnerabilities:", err)
		os.Exit(1)
	}
}

func verify(ctx context.Context) error {
	var messages bytes.Buffer
	command := exec.CommandContext(ctx, filepath.Join("bin", "govulncheck"), "./cmd/...")
	command.Stdout, command.Stderr = os.Stdout, io.MultiWriter(os.Stderr, &messages)
	err := command.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		return fmt.Errorf("run govulncheck, which `go run ./hack/buildtools govulncheck` builds: %w", err)
	}
	return outcome(command.ProcessState.ExitCode(), messages.String())
}

// errNotChecked means that the vulnerabilities are unknown.
var errNotChecked = errors.New("NOT CHECKED for known vulnerabilities: the Go vulnerability database cannot be reached")

// found is the exit status of govulncheck if it has found a vulnerability.
const found = 3

// outcome interprets the exit status and the messages of govulncheck.
func outcome(status int, messages string) error {
	switch {
	case status == 0:
		return nil
	case status == found:
		return errors.New("the programs call vulnerable code, see above: update to the fixed versions")
	case strings.Contains(messages, "fetching vulnerabilities: "):
		return errNotChecked
	default:
		return fmt.Errorf("govulncheck failed with status %d, see above", status)
	}
}
