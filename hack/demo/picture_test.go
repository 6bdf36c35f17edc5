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
	"context"
	"encoding/xml"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/synchub-dev/synchub/hack/demo/timeline"
	"github.com/synchub-dev/synchub/hack/screen"
	"github.com/synchub-dev/synchub/test/fixtures"
)

// recorded is the animated picture of the README.
type recorded struct {
	Lines []struct {
		ID   string `xml:"id,attr"`
		Text string `xml:",chardata"`
	} `xml:"defs>text"`
	Frames []struct {
		Lines []struct {
			Href string `xml:"href,attr"`
		} `xml:"use"`
	} `xml:"svg>g>g"`
}

// chosen are texts that differ from run to run: the cluster that the hub chose, and the namespace of a team on the clusters.
var chosen = regexp.MustCompile(`florin|guilder|app-[a-z0-9]{12}`)

// plain returns a text without white space, at which lines are broken, and without what differs from run to run.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, chosen.ReplaceAllString(text, "…"))
}

// scriptOf returns the titles and the commands of the demo, without running it.
func scriptOf(t *testing.T) (titles, commands []string) {
	t.Helper()
	newCheckout(t)
	state, err := openState()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(state.close)
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = null.Close() })
	d := newDemo(state, screen.New(null), "info")
	d.execute = func(context.Context, command) (string, error) { return "", nil }
	d.await = func(context.Context, func(context.Context) error) error { return nil }
	for _, team := range d.teams {
		for _, cluster := range d.clusters {
			d.fleet.set(team.name, cluster.name, watch.Added, fixtures.Object(t, "{}"))
			for _, stage := range []timeline.Stage{timeline.Created, timeline.Applied, timeline.Available, timeline.Returned} {
				d.log.Record(timeline.Route{Team: team.name, Cluster: cluster.name}, stage, time.Now())
			}
		}
	}
	d.screen.Record(func(finished, _ string) {
		switch text := strings.TrimSpace(finished); {
		case text == "", strings.HasPrefix(text, "CLUSTER "), strings.HasPrefix(text, "TEAM "):
		case strings.HasPrefix(text, "$ "):
			commands = append(commands, text)
		default:
			titles = append(titles, text)
		}
	})
	for _, part := range d.story() {
		if err := part(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return titles, commands
}

// The picture of the README shows the demo as it is now.
func TestThePictureIsUpToDate(t *testing.T) {
	content, err := os.ReadFile("../../docs/images/demo.svg")
	if err != nil {
		t.Fatal(err)
	}
	var picture recorded
	if err := xml.Unmarshal(content, &picture); err != nil {
		t.Fatal(err)
	}
	lines := map[string]string{}
	for _, line := range picture.Lines {
		lines["#"+line.ID] = line.Text
	}
	var frames strings.Builder
	for _, frame := range picture.Frames {
		for _, line := range frame.Lines {
			frames.WriteString(lines[line.Href] + " ")
		}
		frames.WriteString("\x00")
	}
	shown := plain(frames.String())
	titles, commands := scriptOf(t)
	if len(titles) < 5 || len(commands) < 10 {
		t.Errorf("the demo has only %d titles and %d commands", len(titles), len(commands))
	}
	for _, text := range append(titles, commands...) {
		if !strings.Contains(shown, plain(text)) {
			t.Errorf("the picture lacks %q: run `make recording`", text)
		}
	}
	all := "\n"
	for _, command := range commands {
		all += plain(command) + "\n"
	}
	for _, line := range picture.Lines {
		if strings.HasPrefix(line.Text, "$ ") && !strings.Contains(all, "\n"+plain(line.Text)) {
			t.Errorf("the demo no longer has the command %q: run `make recording`", line.Text)
		}
	}
}
