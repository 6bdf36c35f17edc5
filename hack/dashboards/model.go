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

// dashboard is a dashboard as this program describes it.
type dashboard struct {
	uid, title, description string
	variables               []variable
	rows                    []row
}

// variable is a choice at the top of a dashboard: the values of a label of a metric.
type variable struct{ name, label, query string }

// row is a title with panels below it, beside each other.
type row struct {
	title  string
	panels []panel
}

// panel shows the results of queries.
type panel struct {
	title, description string
	// kind is Grafana's: timeseries, stat or table.
	kind string
	// unit is Grafana's: s, ops, bytes, short and others.
	unit string
	// queries are of PromQL, by their legends.
	queries []query
	// thresholds colour a stat: from this value on it is red.
	red *float64
	// stacked piles up the series.
	stacked bool
}

type query struct{ legend, expr string }

// Sizes in Grafana's grid, which has 24 columns.
const (
	columns     = 24
	statHeight  = 4
	graphHeight = 8
)

type object = map[string]any

var dataSource = object{"type": "prometheus", "uid": "${datasource}"}

// render returns the dashboard as Grafana reads it.
func (d dashboard) render() object {
	variables := []object{{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}}
	for _, one := range d.variables {
		variables = append(variables, object{
			"name": one.name, "label": one.label, "type": "query", "datasource": dataSource, "refresh": 2, "sort": 1,
			"definition": one.query, "query": object{"query": one.query, "refId": "A"},
		})
	}
	return object{
		"uid": d.uid, "title": d.title, "description": d.description, "tags": []string{"synchub"}, "schemaVersion": 39, "editable": true,
		"refresh": "30s", "time": object{"from": "now-6h", "to": "now"}, "templating": object{"list": variables}, "panels": d.renderPanels(),
		"links": []object{{"title": "synchub", "type": "dashboards", "tags": []string{"synchub"}, "keepTime": true, "includeVars": false}},
	}
}

func (d dashboard) renderPanels() (panels []object) {
	y := 0
	place := func(rendered object, x, width, height int) {
		rendered["id"], rendered["gridPos"] = len(panels)+1, object{"x": x, "y": y, "w": width, "h": height}
		panels = append(panels, rendered)
	}
	for _, row := range d.rows {
		place(object{"type": "row", "title": row.title, "collapsed": false, "panels": []object{}}, 0, columns, 1)
		y++
		height, width := statHeight, columns/len(row.panels)
		for _, one := range row.panels {
			if one.kind != "stat" {
				height = graphHeight
			}
		}
		for i, one := range row.panels {
			place(one.render(), i*width, width, height)
		}
		y += height
	}
	return panels
}

func (p panel) render() object {
	targets := []object{}
	for i, one := range p.queries {
		target := object{"refId": string(rune('A' + i)), "datasource": dataSource, "expr": one.expr, "legendFormat": one.legend}
		if p.kind != "timeseries" {
			target["instant"] = true
		}
		if p.kind == "table" {
			target["format"] = "table"
		}
		targets = append(targets, target)
	}
	defaults := object{"unit": p.unit, "custom": object{}}
	if p.red != nil {
		defaults["color"] = object{"mode": "thresholds"}
		defaults["thresholds"] = object{"mode": "absolute", "steps": []object{{"color": "green", "value": nil}, {"color": "red", "value": *p.red}}}
	}
	if p.stacked {
		defaults["custom"] = object{"stacking": object{"mode": "normal", "group": "A"}, "fillOpacity": 20}
	}
	rendered := object{
		"type": p.kind, "title": p.title, "description": p.description, "datasource": dataSource, "targets": targets,
		"fieldConfig": object{"defaults": defaults, "overrides": []object{}},
	}
	if p.kind == "table" {
		// The columns that say nothing here.
		rendered["transformations"] = []object{{"id": "organize", "options": object{"excludeByName": object{"Time": true, "Value": true}}}}
	}
	return rendered
}
