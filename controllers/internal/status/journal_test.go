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

package status

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// A mass deletion is one line for each resource and reason, with the number of objects and the first names.
func TestObjectsOfAMomentAreOneLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := &written{}
		j := NewJournal(funcr.NewJSON(lines.add, funcr.Options{}), clock.RealClock{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = j.Start(ctx) }()
		removed := JournalEntry{Message: JournalRemoved, SyncTarget: "florin", Inventory: "i", Resource: schema.GroupResource{Group: "apps", Resource: "deployments"}, Reason: "SourceNotFound"}
		for i := range 500 {
			j.Record(removed, types.NamespacedName{Namespace: "shop", Name: fmt.Sprintf("web-%d", i)}, "")
		}
		failing := removed
		failing.Message, failing.Reason = JournalFailing, "Forbidden"
		j.Record(failing, types.NamespacedName{Name: "a"}, "the target refuses it")
		if synctest.Wait(); lines.count() > 0 {
			t.Errorf("a line does not wait for further objects: %s", lines.next())
		}
		time.Sleep(delay)
		synctest.Wait()
		expectLine(t, lines, JournalRemoved, `"syncTarget":"florin"`, `"inventory":"i"`, `"resource":"deployments.apps"`, `"reason":"SourceNotFound"`, `"count":500`, `"shop/web-9"]`)
		expectLine(t, lines, JournalFailing, `"reason":"Forbidden"`, `"count":1`, `"objects":["a"]`, `"message":"the target refuses it"`)
		// The end of the process writes what is left.
		j.Record(removed, types.NamespacedName{Name: "last"}, "")
		cancel()
		synctest.Wait()
		expectLine(t, lines, `"last"`)
		(*Journal)(nil).Record(removed, types.NamespacedName{}, "")
	})
}

// written are the lines of a log that no test has looked at yet.
type written struct {
	mu    sync.Mutex
	lines []string
}

func (w *written) add(line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, line)
}

func (w *written) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.lines)
}

// next removes the first line and returns it; empty if there is none.
func (w *written) next() (line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.lines) > 0 {
		line, w.lines = w.lines[0], w.lines[1:]
	}
	return line
}

func expectLine(t *testing.T, lines *written, parts ...string) {
	t.Helper()
	line := lines.next()
	for _, part := range parts {
		if !strings.Contains(line, part) || len(line) > 500 {
			t.Errorf("no %s in %s", part, line)
		}
	}
}
