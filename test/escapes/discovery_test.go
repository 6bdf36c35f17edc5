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

package escapes

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/provider/targets"
)

// The hub uses only valid API names from a target's discovery. However many versions the target lists, the hub requests
// only a few.
func TestHostileDiscovery(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	versions := fmt.Sprintf(`{"groupVersion":"example.org/..","version":".."},{"groupVersion":"example.org/%[1]s","version":"%[1]s"}`, long)
	for i := range 5000 {
		versions += fmt.Sprintf(`,{"groupVersion":"example.org/v%[1]d","version":"v%[1]d"}`, i)
	}
	documents := map[string]string{
		"/version":          `{"gitVersion":"v1.35.4"}`,
		"/apis/example.org": `{"kind":"APIGroup","apiVersion":"v1","name":"example.org","versions":[` + versions + `],"preferredVersion":{"version":"` + long + `"}}`,
		"/apis/example.org/v30": `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"example.org/v30","resources":[` +
			`{"name":"` + long + `","kind":"Widget"},{"name":"` + token + `!","kind":"Widget"},{"name":"widgets/status","kind":"Widget"},{"name":"gadgets","kind":"` + long + `"},` +
			`{"name":"gears","kind":"Gear"}]}`,
	}
	var asked atomic.Int64
	connection := connectTo(t, false, func(writer http.ResponseWriter, request *http.Request) {
		if document, ok := documents[request.URL.Path]; ok {
			answer(200, "application/json", document)(writer, request)
			return
		}
		asked.Add(1)
		answer(200, "application/json", `{"kind":"APIResourceList","apiVersion":"v1","resources":[]}`)(writer, request)
	})
	await(t, connection, targets.ReasonConnected)
	if found, _, err := connection.APIs.Resolve(t.Context(), schema.GroupVersionKind{Group: "example.org", Kind: "Gear"}); err != nil || found.String() != "example.org/v30, Resource=gears" {
		t.Errorf("got %s and %v", found, err)
	}
	if found, _, err := connection.APIs.Resolve(t.Context(), schema.GroupVersionKind{Group: "example.org", Kind: "Widget"}); !errors.Is(err, targets.ErrNotServed) {
		t.Errorf("got %s and %v", found, err)
	}
	if kind, _, err := connection.APIs.ResolveResource(t.Context(), schema.GroupVersionResource{Group: "example.org", Resource: "gadgets"}); !errors.Is(err, targets.ErrNotServed) {
		t.Errorf("got %.100s and %v", kind, err)
	}
	if times := asked.Load(); times > 100 {
		t.Errorf("it was asked %d times", times)
	}
}
