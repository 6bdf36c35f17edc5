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
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	program = "#!/bin/sh\necho saw\n"
	former  = "the former program"
)

// entry is a file in an archive.
type entry struct {
	name, content string
	link          bool
}

func tarGz(t *testing.T, entries ...entry) string {
	t.Helper()
	var text bytes.Buffer
	compressed := gzip.NewWriter(&text)
	archive := tar.NewWriter(compressed)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Mode: 0o644, Size: int64(len(e.content)), Typeflag: tar.TypeReg}
		if e.link {
			header = &tar.Header{Name: e.name, Linkname: e.content, Typeflag: tar.TypeSymlink}
			e.content = ""
		}
		if err := archive.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(e.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func zipped(t *testing.T, entries ...entry) string {
	t.Helper()
	var text bytes.Buffer
	archive := zip.NewWriter(&text)
	for _, e := range entries {
		file, err := archive.Create(e.name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.Write([]byte(e.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func sum(content string) string {
	hash := sha256.Sum256([]byte(content))
	return hex.EncodeToString(hash[:])
}

// host serves files by path, over TLS. It answers 404 for other paths.
func host(t *testing.T, files map[string]string) (Client, string) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, ok := files[r.URL.Path]
		target, redirected := strings.CutPrefix(content, "redirect ")
		switch {
		case redirected:
			http.Redirect(w, r, target, http.StatusFound)
		case !ok:
			http.NotFound(w, r)
		default:
			_, _ = w.Write([]byte(content))
		}
	}))
	t.Cleanup(server.Close)
	client := server.Client()
	client.CheckRedirect = secureRedirect
	return Client{HTTP: client, Timeout: time.Minute, MaxFile: 4096}, server.URL
}

func TestInstall(t *testing.T) {
	const listed = "/v1/SHA256SUMS"
	inTar := tarGz(t, entry{name: "saw_v1/README.md", content: "saws"}, entry{name: "saw_v1/saw", content: program})
	inZip := zipped(t, entry{name: "saw_v1/"}, entry{name: "saw_v1/saw", content: program})
	withoutProgram := tarGz(t, entry{name: "saw_v1/README.md", content: "saws"}, entry{name: "saw_v1/saw", content: "/bin/sh", link: true})
	above := tarGz(t, entry{name: "../../saw", content: program})
	bomb := tarGz(t, entry{name: "saw", content: strings.Repeat("0", 1<<20)})
	withSum := func(file, content string) map[string]string {
		return map[string]string{"/v1/" + file: content, listed: sum("other") + "  other\n" + sum(content) + "  " + file + "\n"}
	}

	tests := []struct {
		name    string
		file    string
		files   map[string]string
		pins    func(host string) Pins
		wantErr string
	}{
		{name: "program", file: "saw", files: withSum("saw", program)},
		{name: "tar", file: "saw.tar.gz", files: withSum("saw.tar.gz", inTar)},
		{name: "zip", file: "saw.zip", files: withSum("saw.zip", inZip)},
		{name: "checksum in binary mode", file: "saw", files: map[string]string{"/v1/saw": program, listed: sum(program) + " *saw\n"}},
		{name: "redirected", file: "saw", files: map[string]string{"/v1/saw": "redirect /cdn/saw", "/cdn/saw": program, listed: sum(program) + "  saw\n"}},

		{name: "another file than the checksum's", file: "saw", files: map[string]string{"/v1/saw": program + "\n", listed: sum(program) + "  saw\n"},
			wantErr: "has the SHA-256 checksum " + sum(program+"\n") + ", expected is " + sum(program)},
		{name: "no checksum of the file", file: "saw", files: map[string]string{"/v1/saw": program, listed: sum(program) + "  saw.exe\n"},
			wantErr: "no checksum of saw"},
		{name: "no file with checksums", file: "saw", files: map[string]string{"/v1/saw": program}, wantErr: "/v1/SHA256SUMS: the server answers 404"},
		{name: "a shorter checksum", file: "saw", files: map[string]string{"/v1/saw": program, listed: sum(program)[:40] + "  saw\n"},
			wantErr: "not a SHA-256 checksum"},
		{name: "no such release", file: "saw", files: map[string]string{listed: sum(program) + "  saw\n"}, wantErr: "/v1/saw: the server answers 404"},
		{name: "too large", file: "saw", files: withSum("saw", strings.Repeat("0", 4097)), wantErr: "larger than 4096 bytes"},
		{name: "too large once unpacked", file: "saw.tar.gz", files: withSum("saw.tar.gz", bomb), wantErr: "larger than 4096 bytes"},
		{name: "checksums that are too large", file: "saw", files: map[string]string{"/v1/saw": program, listed: strings.Repeat("\n", maxChecksumFile+1)},
			wantErr: "larger than 4194304 bytes"},
		{name: "a link in place of the program", file: "saw.tar.gz", files: withSum("saw.tar.gz", withoutProgram), wantErr: "no program saw"},
		{name: "zip without the program", file: "saw.zip", files: withSum("saw.zip", zipped(t, entry{name: "saw/"})), wantErr: "no program saw"},
		{name: "an entry outside of the archive", file: "saw.tar.gz", files: withSum("saw.tar.gz", above), wantErr: `entry "../../saw" is outside`},
		{name: "an absolute entry", file: "saw.zip", files: withSum("saw.zip", zipped(t, entry{name: "/bin/saw", content: program})), wantErr: `entry "/bin/saw" is outside`},
		{name: "no archive", file: "saw.tar.gz", files: withSum("saw.tar.gz", program), wantErr: "unpack "},
		{name: "redirected to http", file: "saw", files: map[string]string{"/v1/saw": "redirect http://127.0.0.1/saw", listed: sum(program) + "  saw\n"},
			wantErr: "not https"},

		{name: "pinned", file: "saw", files: map[string]string{"/v1/saw": program},
			pins: func(host string) Pins { return Pins{host + "/v1/saw": sum(program)} }},
		{name: "replaced together with its checksum after it was pinned", file: "saw", files: withSum("saw", "evil"),
			pins: func(host string) Pins { return Pins{host + "/v1/saw": sum(program)} }, wantErr: "from the pinned checksums"},
		{name: "only other versions are pinned", file: "saw", files: withSum("saw", program),
			pins: func(host string) Pins { return Pins{host + "/v0/saw": sum(program)} }, wantErr: "no checksum is pinned"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			client, base := host(t, test.files)
			release := Release{Program: "saw", URL: base + "/v1/" + test.file, ChecksumURL: base + listed, ReadChecksum: List}
			var pins Pins
			if test.pins != nil {
				pins = test.pins(base)
			}
			directory := t.TempDir()
			destination := filepath.Join(directory, "saw")
			if err := os.WriteFile(destination, []byte(former), 0o644); err != nil {
				t.Fatal(err)
			}

			err := client.Install(t.Context(), release, pins, destination)

			want, wantMode := program, os.FileMode(0o755)
			if test.wantErr != "" {
				want, wantMode = former, 0o644
				if err == nil || !strings.Contains(err.Error(), test.wantErr) || !strings.Contains(err.Error(), base) {
					t.Errorf("error %v, want one with %q and the URL", err, test.wantErr)
				}
			} else if err != nil {
				t.Error(err)
			}
			if got, err := os.ReadFile(destination); err != nil || string(got) != want {
				t.Errorf("installed is %q, %v; want %q", got, err, want)
			}
			if info, err := os.Stat(destination); err != nil || info.Mode().Perm() != wantMode {
				t.Errorf("mode %v, %v; want %v", info.Mode(), err, wantMode)
			}
			if left, err := os.ReadDir(directory); err != nil || len(left) != 1 {
				t.Errorf("left beside the program: %v, %v", left, err)
			}
		})
	}
}

func TestInstallEndsInTime(t *testing.T) {
	released := make(chan struct{})
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-released }))
	defer server.Close()
	defer close(released)
	client := Client{HTTP: server.Client(), Timeout: time.Nanosecond, MaxFile: 4096}
	release := Release{Program: "saw", URL: server.URL + "/saw", ChecksumURL: server.URL + "/saw.sha256", ReadChecksum: Single}
	err := client.Install(t.Context(), release, nil, filepath.Join(t.TempDir(), "saw"))
	if err == nil || !strings.Contains(err.Error(), "it took longer than 1ns") {
		t.Errorf("error %v", err)
	}
}

func TestInstallNeedsHTTPS(t *testing.T) {
	release := Release{Program: "saw", URL: "http://127.0.0.1/saw", ChecksumURL: "http://127.0.0.1/saw.sha256", ReadChecksum: Single}
	err := NewClient().Install(t.Context(), release, nil, filepath.Join(t.TempDir(), "saw"))
	if err == nil || !strings.Contains(err.Error(), "only https is allowed") {
		t.Errorf("error %v", err)
	}
}
