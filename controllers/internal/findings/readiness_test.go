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

package findings_test

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/internal/findings"
)

func TestReadiness(t *testing.T) {
	at := func(minute int) time.Time { return time.Unix(int64(minute*60), 0) }
	registry := &findings.Readiness{}
	var published []types.UID
	registry.Changes().Subscribe(t.Context(), func(syncTarget types.UID) { published = append(published, syncTarget) })
	expect := func(what string, syncTarget types.UID, ready bool, since time.Time, wantKnown bool, changes ...types.UID) {
		t.Helper()
		if got, at, known := registry.Of(syncTarget); got != ready || at != since || known != wantKnown {
			t.Errorf("%s: %v since %s, known: %v", what, got, at, known)
		}
		if !slices.Equal(published, changes) {
			t.Errorf("%s: published %v", what, published)
		}
	}
	expect("at first", "a", false, time.Time{}, false)
	registry.Set("a", false, at(1), time.Time{})
	expect("it is not Ready", "a", false, at(1), true, "a")
	registry.Set("a", false, at(2), time.Time{})
	expect("nothing has changed", "a", false, at(1), true, "a")
	registry.Set("a", true, at(3), time.Time{})
	expect("it is Ready", "a", true, at(3), true, "a", "a")
	expect("another one", "b", false, time.Time{}, false, "a", "a")
	registry.Forget("a")
	expect("it is gone", "a", false, time.Time{}, false, "a", "a")
}

func TestNoReadiness(t *testing.T) {
	var registry *findings.Readiness
	registry.Set("a", true, time.Now(), time.Time{})
	registry.Forget("a")
	if _, _, known := registry.Of("a"); known || registry.Changes() != nil {
		t.Error("it knows something")
	}
}
