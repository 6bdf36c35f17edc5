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

package chart

import (
	"fmt"
	"strings"
	"testing"
)

func boardOf(body Body) string {
	return string(Board("a <board>", "a subtitle", "a caption", []Tile{{W: 24, H: 1, Title: "heading"}, {Y: 1, W: 8, H: 6, Title: "the number of all the objects of the fleet", Note: "a > b", Body: body}}))
}

func TestABoardHasItsTexts(t *testing.T) {
	board := boardOf(Number{Text: "17 s", Color: Bad})
	for _, want := range []string{">a &lt;board&gt;<", ">a subtitle<", ">a caption<", ">heading<", ">the number of all the objects of the<", ">fleet<", "fleet\na &gt; b</title>", `class="number bad"`, ">17 s<"} {
		if !strings.Contains(board, want) {
			t.Errorf("there is no %s in\n%s", want, board)
		}
	}
}

func TestATileShowsThatItHasMore(t *testing.T) {
	table := Table{{"name"}}
	var lines Lines
	lines.XTicks, lines.YTicks = []Tick{{0, "0"}, {1, "1"}}, []Tick{{0, "0"}, {1, "1"}}
	for i := range 30 {
		table = append(table, []string{fmt.Sprint("row", i)})
		lines.Lines = append(lines.Lines, Line{Label: fmt.Sprint("line", i), Pieces: [][][2]float64{{{0, 0}, {1, 1}}}})
	}
	for name, body := range map[string]Body{"row": table, "line": lines} {
		board := boardOf(body)
		shown := 0
		for i := range 30 {
			shown += strings.Count(board, fmt.Sprint(">", name, i, "<"))
		}
		if want := fmt.Sprintf("… %d more", 30-shown); shown == 0 || !strings.Contains(board, want) {
			t.Errorf("%d of 30 are shown, and there is no %q in\n%s", shown, want, board)
		}
	}
}

func TestATileWithoutDataIsNotEmpty(t *testing.T) {
	for _, body := range []Body{Table{{"name"}}, Lines{}} {
		if !strings.Contains(boardOf(body), ">No data<") {
			t.Errorf("%T has no text", body)
		}
	}
}

func TestStackedLinesStandOnEachOther(t *testing.T) {
	point := func(y float64) [][][2]float64 { return [][][2]float64{{{0, y}, {1, y}}} }
	lines := Lines{XTicks: []Tick{{0, "0"}, {1, "1"}}, YTicks: []Tick{{0, "0"}, {3, "3"}}, Lines: []Line{{"a", "", point(1)}, {"b", "red", point(2)}}}
	top := head + gridRow + gap + inset + 2*smallLine + gap
	at := func(stacked bool) bool {
		lines.Stacked = stacked
		return strings.Contains(boardOf(lines), fmt.Sprintf(",%.1fh0", top))
	}
	if at(false) || !at(true) {
		t.Error("the second line does not end at the sum of both")
	}
	if board := boardOf(lines); !strings.Contains(board, `class="area green"`) || !strings.Contains(board, `class="area red"`) {
		t.Errorf("the lines have other colors in\n%s", board)
	}
}
