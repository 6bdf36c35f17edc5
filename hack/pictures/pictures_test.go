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
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// exposition is that of a hub, after some seconds.
func exposition(seconds int) []byte {
	return fmt.Appendf(nil, `# TYPE synchub_sync_target_info gauge
synchub_sync_target_info{sync_target="a",name="florin",inventory="root:inventory"} 1
# TYPE synchub_target_up gauge
synchub_target_up{sync_target="a",name="florin",inventory="root:inventory"} 1
# TYPE synchub_sync_actions_total counter
synchub_sync_actions_total{sync_target="a",name="florin",inventory="root:inventory",direction="down",action="Create",cause="Source"} %d
# TYPE process_resident_memory_bytes gauge
process_resident_memory_bytes 1.048576e+08
synchub_build_info{version="v0.1.0"} 1
`, 3*seconds)
}

func newRecorded(t *testing.T) *recording {
	t.Helper()
	r, err := newRecording(5 * time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.close(); err != nil {
			t.Error(err)
		}
	})
	begun := time.Date(2026, 11, 26, 10, 0, 0, 0, time.UTC)
	for seconds := 0; seconds <= 120; seconds += 5 {
		if err := r.add(t.Context(), exposition(seconds), begun.Add(time.Duration(seconds)*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func TestQueries(t *testing.T) {
	q := newQuerier(newRecorded(t), map[string]string{"inventory": "root:inventory", "name": "florin"})
	rates, err := q.over(t.Context(), `sum by (direction) (rate(synchub_sync_actions_total{inventory="$inventory", name="$name"}[$__rate_interval]))`)
	if err != nil || len(rates) != 1 || rates[0].last() != 3 || len(rates[0].points) < 20 {
		t.Errorf("rates %v, %v; want 3 a second over the whole time", rates, err)
	}
	memory, err := q.atEnd(t.Context(), `process_resident_memory_bytes * on (job, instance) group_left () max by (job, instance) (synchub_build_info)`)
	if err != nil || len(memory) != 1 || memory[0].last() != 100<<20 {
		t.Errorf("memory %v, %v", memory, err)
	}
	if none, err := q.over(t.Context(), `synchub_build_info * NaN`); err != nil || len(none) > 0 {
		t.Errorf("points that are no numbers: %v, %v", none, err)
	}
	if _, err := q.atEnd(t.Context(), `sum(`); err == nil {
		t.Error("a query that is wrong has no error")
	}
}

func TestRecord(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(exposition(0)) }))
	defer server.Close()
	r, err := newRecording(time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close() //nolint:errcheck // the other test checks it
	if err := r.record(t.Context(), server.URL, 5*time.Millisecond); err != nil || r.first.IsZero() {
		t.Errorf("recorded from %s, %v", r.first, err)
	}
	if err := r.record(t.Context(), server.URL+"/%zz", time.Millisecond); err == nil {
		t.Error("no error without a server")
	}
}

// Each of the chart's dashboards can be drawn, and shows the titles of all panels and the values of the metrics.
func TestDraw(t *testing.T) {
	q := newQuerier(newRecorded(t), map[string]string{"inventory": "root:inventory", "name": "florin"})
	dashboards, err := readDashboards("../../charts/synchub/files/dashboards")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dashboards {
		picture, err := d.draw(t.Context(), q)
		if err != nil {
			t.Fatalf("%s: %v", d.file, err)
		}
		for _, p := range d.Panels {
			if !strings.Contains(string(picture), ">"+p.Title+"<") {
				t.Errorf("%s has no panel %s", d.file, p.Title)
			}
		}
		decoder := xml.NewDecoder(bytes.NewReader(picture))
		for {
			if _, err := decoder.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s is no XML: %v", d.file, err)
			}
		}
	}
}

func TestFormat(t *testing.T) {
	for _, test := range []struct {
		value float64
		unit  string
		want  string
	}{
		{0, "s", "0"}, {0.0042, "s", "4.2 ms"}, {90, "s", "1.5 min"}, {86400 * 364, "s", "364 d"}, {-0.5, "s", "-500 ms"},
		{1.5 * (1 << 20), "bytes", "1.5 MiB"}, {12345, "short", "12.3 k"}, {0.25, "ops", "0.25 ops/s"}, {1, "bool_yes_no", "Yes"}, {0, "bool_yes_no", "No"},
	} {
		if got := format(test.value, test.unit); got != test.want {
			t.Errorf("%g in %s: %q, want %q", test.value, test.unit, got, test.want)
		}
	}
}
