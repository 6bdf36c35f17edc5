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
	"strings"
	"testing"
)

// execute runs the command line and returns its output and its error. main prints the error after the program's name.
func execute(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var output bytes.Buffer
	command := newCommand()
	command.SetOut(&output)
	command.SetErr(&output)
	command.SetArgs(args)
	err := command.ExecuteContext(t.Context())
	return output.String(), err
}

func TestVersion(t *testing.T) {
	output, err := execute(t, "version")
	if err != nil || !strings.HasPrefix(output, "synchub "+version+" ") {
		t.Errorf("got %q, %v", output, err)
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		output, err := execute(t, "completion", shell)
		if err != nil || !strings.Contains(output, "synchub") {
			t.Errorf("%s: got %d bytes, %v", shell, len(output), err)
		}
	}
}

// The test process does not run in a Pod.
func TestNamespaceOutsideACluster(t *testing.T) {
	options := completeRun(t)
	if settings := options.settings; settings.Namespace != "default" || settings.LeaderElection.Namespace != "default" {
		t.Errorf("got %q and %q", settings.Namespace, settings.LeaderElection.Namespace)
	}
}
