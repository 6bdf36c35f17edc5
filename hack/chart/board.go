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
	"cmp"
	"fmt"
	"html"
	"slices"
	"strings"
)

// Sizes of a board in pixels. charWidth is about the width of a character in small text, nameWidth in titles of tiles.
const (
	gridColumns = 24
	gridColumn  = 37.5
	gridRow     = 26.0
	gap         = 3.0
	inset       = 9.0
	smallLine   = 15.0
	charWidth   = 6.5
	nameWidth   = 7.0
	legendMark  = 14.0
	legendLines = 4
)

// LineColors are the colors of lines, in the order in which lines without a color get them.
var LineColors = []string{"green", "yellow", "blue", "red", "purple", "orange", "teal", "pink"}

const boardStyle = `<style>
svg { --tile: #f6f8fa; --green: #1a7f37; --yellow: #9a6700; --blue: #0969da; --red: #cf222e; --purple: #8250df; --orange: #bc4c00; --teal: #1b7c83; --pink: #bf3989; }
@media (prefers-color-scheme: dark) {
  svg { --tile: #161b22; --green: #56d364; --yellow: #e3b341; --blue: #58a6ff; --red: #ff7b72; --purple: #bc8cff; --orange: #f0883e; --teal: #39c5cf; --pink: #f778ba; }
}
.tile { fill: var(--tile); }
.name { font-size: 12px; font-weight: bold; }
.small { font-size: 11px; }
.number { font-size: 26px; font-weight: bold; }
text.good { fill: var(--green); stroke: none; } text.bad { fill: var(--red); stroke: none; } text.text { stroke: none; }
path { stroke-width: 1.5; fill: none; stroke-linecap: round; stroke-linejoin: round; }
.area { stroke: none; fill-opacity: 0.25; }
.green { stroke: var(--green); } .yellow { stroke: var(--yellow); } .blue { stroke: var(--blue); } .red { stroke: var(--red); }
.purple { stroke: var(--purple); } .orange { stroke: var(--orange); } .teal { stroke: var(--teal); } .pink { stroke: var(--pink); }
.area.green { fill: var(--green); } .area.yellow { fill: var(--yellow); } .area.blue { fill: var(--blue); } .area.red { fill: var(--red); }
.area.purple { fill: var(--purple); } .area.orange { fill: var(--orange); } .area.teal { fill: var(--teal); } .area.pink { fill: var(--pink); }
</style>
`

// Tile is a part of a board, with its place in a grid of 24 columns.
type Tile struct {
	X, Y, W, H int
	Title      string
	// Note is shown when the pointer is over the tile.
	Note string
	// Body is nil for a heading.
	Body Body
}

// Body is the content of a tile: a [Number], a [Table] or [Lines].
type Body interface {
	draw(d *drawing, in box)
}

// Number is a tile with one value.
type Number struct {
	Text  string
	Color Color
}

// Table is a tile with rows of text. The first row has the names of the columns.
type Table [][]string

// Lines is a tile with curves and their legend.
type Lines struct {
	// XTicks and YTicks include the ends of the axes.
	XTicks, YTicks []Tick
	Lines          []Line
	// Stacked draws each line on top of the lines before it.
	Stacked bool
}

// Tick is a labelled value of an axis.
type Tick struct {
	Value float64
	Label string
}

// Line is a curve: pieces without a gap, each with one point or more.
type Line struct {
	Label string
	// Color is one of LineColors, or "".
	Color  string
	Pieces [][][2]float64
}

// box is a part of the picture.
type box struct{ left, top, right, bottom float64 }

// Board draws tiles in a grid, with a subtitle above and a caption below.
func Board(title, subtitle, caption string, tiles []Tile) []byte {
	var d drawing
	fmt.Fprint(&d, boardStyle)
	d.text("title", "start", inset, margin+textMiddle, title)
	d.text("small", "start", inset, head-gap, subtitle)
	bottom := 0.0
	for _, tile := range tiles {
		all := box{float64(tile.X)*gridColumn + gap, head + float64(tile.Y)*gridRow + gap,
			float64(tile.X+tile.W)*gridColumn - gap, head + float64(tile.Y+tile.H)*gridRow - gap}
		bottom = max(bottom, all.bottom)
		d.tile(tile, all)
	}
	d.text("small", "start", inset, bottom+smallLine+gap, caption)
	return d.image(gridColumns*gridColumn, bottom+2*smallLine)
}

func (d *drawing) tile(tile Tile, all box) {
	if tile.Body == nil {
		d.text("heading", "start", all.left+gap, all.bottom-gap, tile.Title)
		return
	}
	fmt.Fprintf(d, "<g><title>%s\n%s</title>\n", html.EscapeString(tile.Title), html.EscapeString(tile.Note))
	fmt.Fprintf(d, "<rect class=\"tile\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"3\"/>\n", all.left, all.top, all.right-all.left, all.bottom-all.top)
	in := box{all.left + inset, all.top + inset, all.right - inset, all.bottom - inset}
	for _, line := range wrap(tile.Title, in.right-in.left) {
		d.text("name", "start", in.left, in.top+smallLine/2, line)
		in.top += smallLine
	}
	tile.Body.draw(d, in)
	fmt.Fprintln(d, "</g>")
}

// wrap breaks a title between words.
func wrap(title string, width float64) (lines []string) {
	for word := range strings.FieldsSeq(title) {
		last := len(lines) - 1
		if last >= 0 && nameWidth*float64(len(lines[last])+1+len(word)) <= width {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}

func (n Number) draw(d *drawing, in box) {
	d.text("number "+string(n.Color), "middle", (in.left+in.right)/2, (in.top+in.bottom)/2+inset, n.Text)
}

// draw cuts rows and columns that do not fit, from the end.
func (t Table) draw(d *drawing, in box) {
	if len(t) < 2 {
		d.noData(in)
		return
	}
	columns := make([]float64, len(t[0]))
	for _, row := range t {
		for i, cell := range row {
			columns[i] = max(columns[i], charWidth*float64(len(cell)+2))
		}
	}
	fits := int((in.bottom - in.top) / smallLine)
	for y, row := range t[:min(len(t), fits)] {
		if y == fits-1 && len(t) > fits {
			d.text("small", "start", in.left, in.top+smallLine*float64(fits), fmt.Sprintf("… %d more", len(t)-y))
			return
		}
		class, x := "small", in.left
		if y == 0 {
			class = "small heading"
		}
		for i, cell := range row {
			d.text(class, "start", x, in.top+smallLine*(float64(y)+1), cut(cell, min(columns[i], in.right-x)))
			x += columns[i]
		}
	}
}

func (d *drawing) noData(in box) {
	d.text("small", "middle", (in.left+in.right)/2, (in.top+in.bottom)/2, "No data")
}

func cut(text string, pixels float64) string {
	runes, fits := []rune(text), int(pixels/charWidth)
	switch {
	case len(runes) <= fits:
		return text
	case fits < 2:
		return ""
	default:
		return string(runes[:fits-1]) + "…"
	}
}

func (l Lines) draw(d *drawing, in box) {
	if len(l.Lines) == 0 {
		d.noData(in)
		return
	}
	legend := l.legend(in.right - in.left)
	axes := in
	axes.top += gap
	axes.bottom -= smallLine * float64(len(legend)+1)
	for _, tick := range l.YTicks {
		axes.left = max(axes.left, in.left+charWidth*float64(len(tick.Label)+1))
	}
	x, y := scale(values(l.XTicks), axes.left, axes.right), scale(values(l.YTicks), axes.bottom, axes.top)
	for _, tick := range l.XTicks {
		d.line("grid", x(tick.Value), axes.bottom, x(tick.Value), axes.top)
		d.text("small", "middle", min(x(tick.Value), in.right-charWidth*float64(len(tick.Label))/2), axes.bottom+smallLine, tick.Label)
	}
	for _, tick := range l.YTicks {
		d.line("grid", axes.left, y(tick.Value), axes.right, y(tick.Value))
		d.text("small", "end", axes.left-charWidth, y(tick.Value)+textMiddle, tick.Label)
	}
	l.curves(d, x, y)
	for n, items := range legend {
		at := in.left
		for _, item := range items {
			middle := in.bottom - smallLine*float64(len(legend)-n-1)
			if item.color != "" {
				d.line(item.color, at, middle-textMiddle, at+legendMark-4, middle-textMiddle)
			}
			d.text("small", "start", at+legendMark, middle, item.label)
			at += item.width
		}
	}
}

func values(ticks []Tick) (all []float64) {
	for _, tick := range ticks {
		all = append(all, tick.Value)
	}
	return all
}

func (l Lines) curves(d *drawing, x, y func(float64) float64) {
	below := map[float64]float64{}
	for i, line := range l.Lines {
		color := line.color(i)
		for _, piece := range line.Pieces {
			top, bottom := slices.Clone(piece), slices.Clone(piece)
			for n, point := range piece {
				base := below[point[0]]
				top[n][1], bottom[n][1] = base+point[1], base
				if l.Stacked {
					below[point[0]] = top[n][1]
				}
			}
			if l.Stacked {
				slices.Reverse(bottom)
				fmt.Fprintf(d, "<path class=\"area %s\" d=\"M%sZ\"/>\n", color, path(append(slices.Clone(top), bottom...), x, y))
			}
			// A piece of one point is a dot.
			fmt.Fprintf(d, "<path class=%q d=\"M%sh0\"/>\n", color, path(top, x, y))
		}
	}
}

func (l Line) color(index int) string { return cmp.Or(l.Color, LineColors[index%len(LineColors)]) }

func path(points [][2]float64, x, y func(float64) float64) string {
	text := make([]string, len(points))
	for i, point := range points {
		text[i] = fmt.Sprintf("%.1f,%.1f", x(point[0]), y(point[1]))
	}
	return strings.Join(text, " ")
}

type legendItem struct {
	label, color string
	width        float64
}

// legend returns the rows of the legend, with the number of the lines that have no place in it.
func (l Lines) legend(width float64) (rows [][]legendItem) {
	free := 0.0
	for i, line := range l.Lines {
		item := legendItem{label: cut(line.Label, width-legendMark), color: line.color(i)}
		if item.width = legendMark + charWidth*float64(len(item.label)+2); item.width-2*charWidth > free {
			if len(rows) == legendLines {
				rows[legendLines-1] = []legendItem{{label: fmt.Sprintf("… %d more", len(l.Lines)-i+len(rows[legendLines-1]))}}
				return rows
			}
			rows, free = append(rows, nil), width
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], item)
		free -= item.width
	}
	return rows
}
