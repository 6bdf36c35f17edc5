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
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPins(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pins")
	if pins, err := ReadPins(file); err != nil || pins != nil {
		t.Errorf("without a file: %v, %v; want no pins, so that published checksums count", pins, err)
	}

	pins := Pins{"https://example.org/v2/saw": sum("saw"), "https://example.org/v1/plane": sum("plane")}
	if err := pins.Write(file); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	want := sum("plane") + "  https://example.org/v1/plane\n" + sum("saw") + "  https://example.org/v2/saw\n"
	if err != nil || string(text) != want {
		t.Errorf("wrote\n%s%v, want\n%s", text, err, want)
	}
	if got, err := ReadPins(file); err != nil || !maps.Equal(got, pins) {
		t.Errorf("read %v, %v; want %v", got, err, pins)
	}
}

func TestPinsThatAreWrong(t *testing.T) {
	for content, want := range map[string]string{
		"":                                   "",
		"https://example.org/saw\n":          "is not a checksum and a URL",
		"00  https://example.org/saw\n":      "not a SHA-256 checksum",
		sum("saw") + "  https://a b c/saw\n": "is not a checksum and a URL",
	} {
		file := filepath.Join(t.TempDir(), "pins")
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		pins, err := ReadPins(file)
		if want == "" {
			if err != nil || pins == nil {
				t.Errorf("an empty file: %v, %v; want pins without an entry, so that nothing is downloaded", pins, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", content, err, want)
		}
	}
}
