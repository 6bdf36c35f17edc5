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

package wording

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestCount(t *testing.T) {
	for number, want := range map[int64]string{0: "0 clusters", 1: "1 cluster", 2: "2 clusters"} {
		if got := Count(number, "cluster", "clusters"); got != want {
			t.Errorf("%d: got %s", number, got)
		}
	}
}

// counted matches a number before a plural, or before the verb of one. "1 of 1 replicas" and limits, which are constants above 1, are right.
var counted = regexp.MustCompile(`(of|than|most|last|first|has|have) %d|%d (more )?(selected |deleted |other )?(clusters|copies|destinations|mailboxes|namespaces|objects|pairs|problems|replicas|resources|targets|workspaces|[A-Z]\w+s|are|were|have|do|need|wait|stay|differ|remain)\b`)

func TestMessagesCountWithThisPackage(t *testing.T) {
	repository := os.DirFS("../..")
	for _, root := range []string{"cmd", "controllers", "provider"} {
		if err := fs.WalkDir(repository, root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			content, err := fs.ReadFile(repository, path)
			for number, line := range strings.Split(string(content), "\n") {
				if !strings.Contains(line, "%d") {
					continue
				}
				for _, found := range counted.FindAllString(line, -1) {
					if strings.HasPrefix(found, "%d") {
						t.Errorf("%s:%d: %q is wrong for 1: use Count", path, number+1, found)
					}
				}
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
}
