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
	"context"
	"fmt"
	"image/color"

	stdfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Sizes. The grid has 24 columns.
const (
	columns  = 24
	cell     = vg.Length(50)
	gridRow  = vg.Length(30)
	gap      = vg.Length(4)
	inset    = vg.Length(9)
	header   = vg.Length(40)
	textSize = vg.Length(10.5)
)

// Colors of Grafana's dark theme, roughly: such a picture is dark in light documents too.
var (
	page     = color.NRGBA{R: 0x11, G: 0x12, B: 0x17, A: 0xff}
	surface  = color.NRGBA{R: 0x1b, G: 0x1e, B: 0x24, A: 0xff}
	bright   = color.NRGBA{R: 0xe4, G: 0xe6, B: 0xeb, A: 0xff}
	pale     = color.NRGBA{R: 0x9d, G: 0xa3, B: 0xae, A: 0xff}
	gridLine = color.NRGBA{R: 0x30, G: 0x34, B: 0x3c, A: 0xff}
	green    = color.NRGBA{R: 0x73, G: 0xbf, B: 0x69, A: 0xff}
	red      = color.NRGBA{R: 0xf2, G: 0x49, B: 0x5c, A: 0xff}

	palette = []color.NRGBA{
		green, {R: 0xfa, G: 0xde, B: 0x2a, A: 0xff}, {R: 0x57, G: 0x94, B: 0xf2, A: 0xff}, {R: 0xff, G: 0x98, B: 0x30, A: 0xff},
		red, {R: 0xb8, G: 0x77, B: 0xd9, A: 0xff}, {R: 0x5e, G: 0xd3, B: 0xd3, A: 0xff}, {R: 0xc0, G: 0xd8, B: 0xff, A: 0xff},
	}
)

func style(size vg.Length, weight stdfont.Weight, in color.Color, x text.XAlignment, y text.YAlignment) text.Style {
	return text.Style{
		Color: in, XAlign: x, YAlign: y, Handler: plot.DefaultTextHandler,
		Font: font.Font{Typeface: "Liberation", Variant: "Sans", Weight: weight, Size: size},
	}
}

// draw returns a picture of the dashboard.
func (d dashboard) draw(ctx context.Context, q *querier) ([]byte, error) {
	rows := 0
	for _, p := range d.Panels {
		rows = max(rows, p.GridPos.Y+p.GridPos.H)
	}
	width, height := columns*cell+2*gap, header+vg.Length(rows)*gridRow+2*gap
	canvas := vgsvg.New(width, height)
	all := draw.New(canvas)
	fill(all, page)
	all.FillText(style(14, stdfont.WeightBold, bright, text.XLeft, text.YCenter), vg.Point{X: inset, Y: height - header/2}, d.Title)
	for _, p := range d.Panels {
		if err := p.draw(ctx, q, place(all, p, height)); err != nil {
			return nil, fmt.Errorf("%s: %w", p.Title, err)
		}
	}
	var picture bytes.Buffer
	if _, err := canvas.WriteTo(&picture); err != nil {
		return nil, fmt.Errorf("write the picture: %w", err)
	}
	// Readers without the font get a similar one.
	return bytes.ReplaceAll(picture.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Helvetica,Arial,sans-serif;")), nil
}

// place returns the part of the picture that a panel has.
func place(all draw.Canvas, p panel, height vg.Length) draw.Canvas {
	left, top := vg.Length(p.GridPos.X)*cell+gap, height-header-vg.Length(p.GridPos.Y)*gridRow
	return draw.Canvas{Canvas: all.Canvas, Rectangle: vg.Rectangle{
		Min: vg.Point{X: left + gap/2, Y: top - vg.Length(p.GridPos.H)*gridRow + gap/2},
		Max: vg.Point{X: left + vg.Length(p.GridPos.W)*cell - gap/2, Y: top - gap/2},
	}}
}

func fill(c draw.Canvas, in color.Color) {
	c.FillPolygon(in, []vg.Point{
		c.Min, {X: c.Max.X, Y: c.Min.Y}, c.Max, {X: c.Min.X, Y: c.Max.Y},
	})
}

// draw draws the panel.
func (p panel) draw(ctx context.Context, q *querier, c draw.Canvas) error {
	if p.Type == "row" {
		c.FillText(style(textSize+1, stdfont.WeightBold, bright, text.XLeft, text.YCenter), vg.Point{X: c.Min.X + gap, Y: c.Center().Y}, p.Title)
		return nil
	}
	fill(c, surface)
	c = draw.Crop(c, inset, -inset, inset, -inset)
	title := style(textSize, stdfont.WeightBold, bright, text.XLeft, text.YTop)
	c.FillText(title, vg.Point{X: c.Min.X, Y: c.Max.Y}, p.Title)
	c = draw.Crop(c, 0, 0, 0, -textSize-gap)
	switch p.Type {
	case "stat":
		return p.stat(ctx, q, c)
	case "timeseries":
		return p.graph(ctx, q, c)
	case "table":
		return p.table(ctx, q, c)
	default:
		return fmt.Errorf("there is no picture of a panel of the type %s", p.Type)
	}
}
