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

package download

import (
	"fmt"
	"strings"
	"testing"
)

func TestReadChecksums(t *testing.T) {
	digest, other := sum("saw"), sum("plane")
	gitHub := fmt.Sprintf(`{"tag_name": "v1", "assets": [
		{"name": "plane", "digest": "sha256:%s"}, {"name": "saw", "digest": "sha256:%s"}, {"name": "old", "digest": null}, {"name": "md5", "digest": "md5:00"}]}`, other, digest)
	tests := []struct {
		name    string
		read    ChecksumReader
		content string
		file    string
		wantErr string
	}{
		{name: "one", read: Single, content: digest + "\n", file: "saw"},
		{name: "one in capitals", read: Single, content: strings.ToUpper(digest), file: "saw"},
		{name: "a page in place of one", read: Single, content: "<html>", file: "saw", wantErr: "not a SHA-256 checksum"},
		{name: "none", read: Single, file: "saw", wantErr: "not a SHA-256 checksum"},
		{name: "list", read: List, content: other + "  plane\n" + digest + "  saw\n", file: "saw"},
		{name: "list with similar names", read: List, content: other + "  saw.sbom\n" + other + "  jigsaw\n", file: "saw", wantErr: "no checksum of saw"},
		{name: "GitHub", read: GitHubRelease, content: gitHub, file: "saw"},
		{name: "GitHub without the file", read: GitHubRelease, content: gitHub, file: "hammer", wantErr: "no checksum of hammer"},
		{name: "GitHub before it computed checksums", read: GitHubRelease, content: gitHub, file: "old", wantErr: "no checksum of old"},
		{name: "GitHub with another algorithm", read: GitHubRelease, content: gitHub, file: "md5", wantErr: "no checksum of md5"},
		{name: "GitHub in trouble", read: GitHubRelease, content: "<html>", file: "saw", wantErr: "read a release of GitHub"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := test.read([]byte(test.content), test.file)
			if test.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Errorf("error %v, want one with %q", err, test.wantErr)
				}
				return
			}
			if err != nil || got != digest {
				t.Errorf("%s, %v; want %s", got, err, digest)
			}
		})
	}
}
