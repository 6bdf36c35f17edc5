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

package program

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"
)

// Kubernetes replaces the token of a ServiceAccount before it expires.
func TestTokenIsReadAgain(t *testing.T) {
	clock := testclock.NewFakeClock(time.Now())
	token := tokenFile{name: filepath.Join(t.TempDir(), "token"), clock: clock}
	expect := func(want string) {
		t.Helper()
		if got, err := token.get(); got != want || err != nil {
			t.Errorf("want %q, got %q, %v", want, got, err)
		}
	}
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(token.name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := token.get(); err == nil {
		t.Error("a token without a file")
	}
	write("first\n")
	expect("first")
	write("second")
	expect("first")
	clock.Step(tokenLifetime)
	expect("second")
	if err := os.Remove(token.name); err != nil {
		t.Fatal(err)
	}
	clock.Step(tokenLifetime)
	expect("second")
	write("")
	clock.Step(tokenLifetime)
	expect("second")
	write("third")
	clock.Step(tokenLifetime)
	expect("third")
}
