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

package storehistory

import (
	"encoding/json"
	"maps"
	"slices"
)

// Annotation is on the hub's Lease in the hosting cluster. Its value is what [Guard.Watermarks] returns. It is renewed with the
// Lease, so it costs no request.
const Annotation = "synchub.dev/kcp-versions"

// maxWatermarks bounds the sources in the annotation.
const maxWatermarks = 64

// LedgerSource is the source of the ledger's own ConfigMap. Endpoints are sources by their URLs.
const LedgerSource = "ledger"

// Track makes a source's highest version part of the annotation, until stop is called.
func (g *Guard) Track(source string, version func() uint64) (stop func()) {
	if g == nil {
		return func() {}
	}
	g.lock.Lock()
	defer g.lock.Unlock()
	g.watermarks[source] = version
	return func() {
		g.lock.Lock()
		defer g.lock.Unlock()
		delete(g.watermarks, source)
	}
}

// Watermarks returns the next value of the annotation. Sources that were not read yet keep their versions. ok is false while
// a rewind is not stored: the annotation must stay unchanged during that time, so that a crash loses no rewind.
func (g *Guard) Watermarks(annotation string) (next string, ok bool) {
	if g == nil {
		return "", false
	}
	g.lock.Lock()
	defer g.lock.Unlock()
	if !g.isStored {
		return "", false
	}
	versions := parseWatermarks(annotation)
	for source, current := range g.watermarks {
		if version := current(); version > 0 {
			versions[source] = version
		}
	}
	for _, source := range slices.Sorted(maps.Keys(versions)) {
		if _, isTracked := g.watermarks[source]; !isTracked && len(versions) > maxWatermarks {
			delete(versions, source)
		}
	}
	text, err := json.Marshal(versions)
	return string(text), err == nil && len(versions) > 0 && len(versions) <= maxWatermarks
}

func parseWatermarks(annotation string) map[string]uint64 {
	versions := map[string]uint64{}
	if json.Unmarshal([]byte(annotation), &versions) != nil || versions == nil {
		return map[string]uint64{}
	}
	return versions
}

// SetPrevious records the annotation that the hub has written so far. It must be read before the lists that are compared with
// it.
func (g *Guard) SetPrevious(annotation string) {
	if g == nil {
		return
	}
	g.lock.Lock()
	defer g.lock.Unlock()
	g.previous = parseWatermarks(annotation)
}

// Check reports a rewind if the version of a source is older than its version in the annotation. The version must come from a
// read that began after [Guard.SetPrevious].
func (g *Guard) Check(source, where string, now uint64) {
	if g == nil {
		return
	}
	g.lock.Lock()
	seen := g.previous[source]
	delete(g.previous, source)
	g.lock.Unlock()
	if now > 0 && now < seen {
		g.Report(where, seen, now)
	}
}
