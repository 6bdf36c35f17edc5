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

import "testing"

func TestHasHeader(t *testing.T) {
	const header = "/*\nCopyright\n*/\n"
	tests := []struct {
		name, content string
		want          bool
	}{
		{"header first", "/*\nCopyright\n*/\n\npackage p\n", true},
		{"below a build constraint", "//go:build linux\n\n/*\nCopyright\n*/\n\npackage p\n", true},
		{"none", "package p\n", false},
		{"another text", "/*\nCopyleft\n*/\n\npackage p\n", false},
		{"below the package clause", "package p\n\n/*\nCopyright\n*/\n", false},
		{"cut off", "/*\nCopyright\n", false},
		{"empty file", "", false},
		{"only a build constraint", "//go:build linux", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := hasHeader([]byte(test.content), []byte(header)); got != test.want {
				t.Errorf("hasHeader: %t, want %t", got, test.want)
			}
		})
	}
}
