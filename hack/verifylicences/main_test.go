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
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	mit = `MIT License

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies.`
	bsd2 = `Redistribution and use in source and binary forms are permitted provided that:
* Redistributions of source code must retain the above copyright notice.
* Redistributions in binary form must reproduce the above copyright notice.`
	bsd3 = bsd2 + "\n* Neither the name of Google Inc. nor the names of its\ncontributors may be used to endorse or promote products."
	isc  = `Permission to use, copy, modify, and/or distribute this software for any
purpose with or without fee is hereby granted, provided that the above copyright notice appears in all copies.`
	mpl = `Mozilla Public License Version 2.0
"Secondary License" means either the GNU General Public License, Version 2.0, or any later versions.
Covered Software is provided under this License on an "as is" basis.`
	gpl = "GNU GENERAL PUBLIC LICENSE\n   Version 3, 29 June 2007"
)

func TestRecognise(t *testing.T) {
	own, err := os.ReadFile(filepath.Join("..", "..", "LICENSE"))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, text, want string }{
		{"the project's own", string(own), "Apache-2.0"},
		{"MIT", mit, "MIT"},
		{"MIT on one line", strings.ReplaceAll(mit, "\n", " "), "MIT"},
		{"two clauses", bsd2, "BSD-2-Clause"},
		{"three clauses", bsd3, "BSD-3-Clause"},
		{"ISC", isc, "ISC"},
		{"one that names the GPL", mpl, "MPL-2.0"},
		{"two of the list", mit + bsd3, "MIT"},
		{"GPL", gpl, ""},
		{"MIT, and the GPL below it", mit + "\n" + gpl, ""},
		{"Apache with a condition", string(own) + "\n\"Commons Clause\" License Condition v1.0", ""},
		{"BSD with the clause on advertising", bsd3 + "\nAll advertising materials mentioning features of this software", ""},
		{"only the name of one", "Licensed under the MIT License", ""},
		{"somebody's own words", "All rights reserved.", ""},
		{"nothing", "", ""},
	}
	for _, test := range tests {
		got, err := recognise(test.text)
		if got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%s: %q, %v; want %q", test.name, got, err, test.want)
		}
	}
}

func TestVerify(t *testing.T) {
	tests := []struct {
		name  string
		files map[string]string
		// wantErr is empty if no error is expected.
		wantErr string
	}{
		{"in the root", map[string]string{"LICENSE": mit}, ""},
		{"spelled otherwise", map[string]string{"Licence.txt": mit}, ""},
		{"two of them", map[string]string{"LICENSE": mit, "LICENSE.libyaml": bsd2}, ""},
		{"none", map[string]string{"README.md": mit, "license.go": "package m", "NOTICE": mit}, "there is no licence file in "},
		{"only beside a package", map[string]string{"used/LICENSE": mit}, "there is no licence file in "},
		{"not recognised", map[string]string{"COPYING": gpl}, "COPYING: this is the text of no licence"},
		{"one of two", map[string]string{"LICENSE": mit, "LICENSE-GPL": gpl}, "LICENSE-GPL: this is the text of no licence"},
		{"beside a package that is used", map[string]string{"LICENSE": mit, "used/LICENSE": gpl}, "used/LICENSE: this is the text of no licence"},
		{"above such a package", map[string]string{"LICENSE": mit, "third_party/LICENSE": gpl}, "third_party/LICENSE: this is the text of no licence"},
		{"a template for headers", map[string]string{"LICENSE": mit, "LICENSE_TEMPLATE_GO": "{{.Year}}"}, ""},
		{"nothing but a template", map[string]string{"LICENSE_TEMPLATE": mit}, "there is no licence file in "},
		{"beside a package that is not", map[string]string{"LICENSE": mit, "unused/LICENSE": gpl}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			root := t.TempDir()
			m := module{root: root, directories: []string{root, filepath.Join(root, "used"), filepath.Join(root, "third_party", "forked")}}
			for _, directory := range append(m.directories, filepath.Join(root, "unused")) {
				if err := os.MkdirAll(directory, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for name, text := range test.files {
				if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			err := m.verify()
			if test.wantErr == "" && err != nil || test.wantErr != "" && (err == nil || !strings.Contains(err.Error(), test.wantErr)) {
				t.Errorf("error %v, want %q", err, test.wantErr)
			}
		})
	}
}

func TestModulesIn(t *testing.T) {
	got := modulesIn("\t/go/src/fmt\nb.org/b\tv1.0.0\t/mod/b\t/mod/b/p\na.org/a\tv2.0.0\t/mod/a\t/mod/a\nb.org/b\tv1.0.0\t/mod/b\t/mod/b/q\n")
	if len(got) != 2 || got[0].path != "a.org/a" || got[1].path != "b.org/b" || got[1].version != "v1.0.0" || got[1].root != "/mod/b" ||
		strings.Join(got[1].directories, " ") != "/mod/b/p /mod/b/q" {
		t.Errorf("modules %+v", got)
	}
}
