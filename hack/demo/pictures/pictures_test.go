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

package pictures

import (
	"context"
	"encoding/xml"
	"errors"
	"html"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/synchub-dev/synchub/hack/chart"
	"github.com/synchub-dev/synchub/test/framework/dashboards"
)

const root = "../../.."

// one answers each query with one series that has all labels, except those with the text in failing.
type one struct{ failing string }

var labels = model.Metric{"name": "florin", "inventory": "abc", "reason": "Invalid", "state": "stopped", "condition": "Ready", "status": "False", "instance": "synchub-0"}

func (o one) fail(query string) error {
	if o.failing != "" && strings.Contains(query, o.failing) {
		return errors.New("parse error")
	}
	if strings.Contains(query, "$") {
		return errors.New("a variable is left in " + query)
	}
	return nil
}

func (o one) Query(_ context.Context, query string, at time.Time, _ ...prometheusv1.Option) (model.Value, prometheusv1.Warnings, error) {
	return model.Vector{{Metric: labels, Value: 1, Timestamp: model.TimeFromUnixNano(at.UnixNano())}}, nil, o.fail(query)
}

func (o one) QueryRange(_ context.Context, query string, over prometheusv1.Range, _ ...prometheusv1.Option) (model.Value, prometheusv1.Warnings, error) {
	series := &model.SampleStream{Metric: labels}
	for at := over.Start; !at.After(over.End); at = at.Add(over.Step) {
		series.Values = append(series.Values, model.SamplePair{Timestamp: model.TimeFromUnixNano(at.UnixNano()), Value: model.SampleValue(at.Sub(over.Start).Seconds())})
	}
	return model.Matrix{series}, nil, o.fail(query)
}

func painter(failing string) *Painter {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return &Painter{
		Querier: one{failing}, Range: prometheusv1.Range{Start: start, End: start.Add(5 * time.Minute), Step: 5 * time.Second},
		Variables: map[string]string{"inventory": "abc", "name": "florin"}, Caption: "a caption",
	}
}

func chartDashboards(t *testing.T) []dashboards.Dashboard {
	t.Helper()
	all, err := dashboards.Read(filepath.Join(root, "charts", "synchub", "files", "dashboards"))
	if err != nil || len(all) != 3 {
		t.Fatalf("%d dashboards were read: %v", len(all), err)
	}
	return all
}

func checkXML(t *testing.T, text string) {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
	}
}

func checkShown(t *testing.T, dashboard dashboards.Dashboard, picture string) {
	t.Helper()
	for _, panel := range dashboard.Panels {
		want := "<title>" + html.EscapeString(panel.Title+"\n"+Note(panel)) + "</title>"
		if panel.Type == "row" {
			want = ">" + html.EscapeString(panel.Title) + "</text>"
		}
		if !strings.Contains(picture, want) {
			t.Errorf("the picture of %s does not have the panel %q as it is: run `make dashboard-pictures`", dashboard.Title, panel.Title)
		}
	}
}

func TestEachPanelOfTheChartIsDrawn(t *testing.T) {
	for _, dashboard := range chartDashboards(t) {
		picture, err := painter("").Paint(t.Context(), dashboard)
		if err != nil {
			t.Fatal(err)
		}
		checkXML(t, string(picture))
		checkShown(t, dashboard, string(picture))
		if strings.Contains(string(picture), "No data") || strings.Contains(string(picture), "NaN") || strings.Contains(string(picture), "{{") {
			t.Errorf("%s lacks data:\n%s", dashboard.Title, picture)
		}
	}
}

// The committed pictures show the dashboards as they are now.
func TestThePicturesAreUpToDate(t *testing.T) {
	for _, dashboard := range chartDashboards(t) {
		file := filepath.Join(root, "docs", "images", "dashboard-"+strings.TrimPrefix(dashboard.UID, "synchub-")+".svg")
		picture, err := os.ReadFile(file)
		if err != nil {
			t.Fatalf("run `make dashboard-pictures`: %v", err)
		}
		checkXML(t, string(picture))
		checkShown(t, dashboard, string(picture))
		if len(picture) > 150_000 {
			t.Errorf("%s has %d bytes", file, len(picture))
		}
	}
}

func TestAQueryThatFailsNamesItsPanel(t *testing.T) {
	fleet := chartDashboards(t)[0]
	for failing, panel := range map[string]string{
		"synchub_sync_target_info":         "SyncTargets",
		"by (state) (synchub_placement_ro": "Rollouts by state",
		"HeartbeatHealthy":                 "Conditions that are not True",
		"synchub_mailbox_creation_seconds": "Mailbox creation latency",
	} {
		_, err := painter(failing).Paint(t.Context(), fleet)
		if err == nil || !strings.Contains(err.Error(), `synchub / Fleet: the panel "`+panel+`"`) || !strings.Contains(err.Error(), "parse error") {
			t.Errorf("the query of %q fails with %v", panel, err)
		}
	}
	fleet.Panels[1].Type = "heatmap"
	if _, err := painter("").Paint(t.Context(), fleet); err == nil || !strings.Contains(err.Error(), "heatmap") {
		t.Errorf("an unknown type fails with %v", err)
	}
}

func TestANumberHasTheColorOfItsThreshold(t *testing.T) {
	for _, panel := range chartDashboards(t)[0].Panels {
		if panel.Title != "SyncTargets" && panel.Title != "Unreachable clusters" {
			continue
		}
		body, err := painter("").body(t.Context(), panel)
		want := map[string]chart.Body{"SyncTargets": chart.Number{Text: "1", Color: chart.Good}, "Unreachable clusters": chart.Number{Text: "1", Color: chart.Bad}}
		if err != nil || body != want[panel.Title] {
			t.Errorf("%s is %v, %v", panel.Title, body, err)
		}
	}
}

func TestALineHasNoPointsThatAreNoNumbers(t *testing.T) {
	p := painter("")
	var samples []model.SamplePair
	for i, value := range []float64{1, 2, math.NaN(), 4, math.Inf(1)} {
		samples = append(samples, model.SamplePair{Timestamp: model.TimeFromUnixNano(p.Range.Start.Add(time.Duration(i) * p.Range.Step).UnixNano()), Value: model.SampleValue(value)})
	}
	pieces := p.pieces(samples)
	if len(pieces) != 2 || len(pieces[0]) != 2 || pieces[1][0] != [2]float64{15, 4} {
		t.Errorf("the pieces are %v", pieces)
	}
}

func TestFormat(t *testing.T) {
	for _, test := range []struct {
		value      float64
		unit, want string
	}{
		{0, "s", "0"}, {0.0042, "s", "4.2 ms"}, {90, "s", "1.5 min"}, {86400 * 364, "s", "364 d"}, {-0.5, "s", "-500 ms"},
		{1.5 * (1 << 20), "bytes", "1.5 MiB"}, {12345, "short", "12.3 K"}, {999.9, "short", "1000"}, {0.25, "ops", "0.25 ops/s"}, {1, "bool_yes_no", "Yes"},
		{0, "bool_yes_no", "No"}, {3, "", "3"},
	} {
		if got := format(test.value, test.unit); got != test.want {
			t.Errorf("%g in %q: %q, want %q", test.value, test.unit, got, test.want)
		}
	}
}

func TestTicks(t *testing.T) {
	for _, test := range []struct {
		least, greatest float64
		unit, want      string
	}{
		{0, 0, "short", "0 0.5 1"}, {0, 3, "short", "0 1 2 3"}, {0, 130, "s", "0 1 min 2 min 3 min"}, {-5, 95, "short", "-50 0 50 100"}, {0, 0.37, "ops", "0 0.1 ops/s 0.2 ops/s 0.3 ops/s 0.4 ops/s"},
	} {
		var labels []string
		for _, tick := range ticks(test.least, test.greatest, test.unit) {
			labels = append(labels, tick.Label)
		}
		if got := strings.Join(labels, " "); got != test.want {
			t.Errorf("from %g to %g: %s, want %s", test.least, test.greatest, got, test.want)
		}
	}
}
