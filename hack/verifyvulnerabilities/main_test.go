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
	"errors"
	"testing"
)

func TestOutcome(t *testing.T) {
	const unreachable = `govulncheck: fetching vulnerabilities: Get "https://vulnerabilities.example/index/modules.json.gz": dial tcp: no such host`
	tests := []struct {
		name             string
		status           int
		messages         string
		fails, unchecked bool
	}{
		{name: "nothing found"},
		{name: "something found", status: 3, fails: true},
		{name: "the database cannot be reached", status: 1, messages: unreachable, fails: true, unchecked: true},
		{name: "the code cannot be loaded", status: 1, messages: "govulncheck: loading packages: there are errors", fails: true},
		{name: "killed", status: -1, fails: true},
	}
	for _, test := range tests {
		err := outcome(test.status, test.messages)
		if (err != nil) != test.fails || errors.Is(err, errNotChecked) != test.unchecked {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}
