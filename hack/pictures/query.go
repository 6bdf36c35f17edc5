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
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
)

const (
	maxSamples = 10_000_000
	queryLimit = time.Minute
	lookback   = 5 * time.Minute
	// A rate is over four periods, as Grafana computes it.
	periodsOfRate = 4
)

// querier evaluates the queries of panels.
type querier struct {
	*recording
	engine    *promql.Engine
	variables *strings.Replacer
}

func newQuerier(r *recording, variables map[string]string) *querier {
	pairs := []string{"$__rate_interval", fmt.Sprintf("%dms", (periodsOfRate * r.period).Milliseconds())}
	for name, value := range variables {
		pairs = append(pairs, "$"+name, value)
	}
	return &querier{
		recording: r,
		engine:    promql.NewEngine(promql.EngineOpts{MaxSamples: maxSamples, Timeout: queryLimit, LookbackDelta: lookback}),
		variables: strings.NewReplacer(pairs...),
	}
}

// series is a result of a query: its values over time or, of the last moment, one value.
type series struct {
	labels labels.Labels
	points []promql.FPoint
}

func (s series) last() float64 { return s.points[len(s.points)-1].F }

// over returns the results for the whole time.
func (q *querier) over(ctx context.Context, expression string) ([]series, error) {
	query, err := q.engine.NewRangeQuery(ctx, q.db, nil, q.variables.Replace(expression), q.first, q.last, q.period)
	if err != nil {
		return nil, fmt.Errorf("query %s: %w", expression, err)
	}
	defer query.Close()
	matrix, err := query.Exec(ctx).Matrix()
	if err != nil {
		return nil, fmt.Errorf("query %s: %w", expression, err)
	}
	var all []series
	for _, one := range matrix {
		// A quantile of no events is no number. The points belong to the query, which ends.
		points := slices.DeleteFunc(slices.Clone(one.Floats), func(at promql.FPoint) bool { return math.IsNaN(at.F) || math.IsInf(at.F, 0) })
		if len(points) > 0 {
			all = append(all, series{labels: one.Metric, points: points})
		}
	}
	return all, nil
}

// atEnd returns the results of the last moment.
func (q *querier) atEnd(ctx context.Context, expression string) ([]series, error) {
	query, err := q.engine.NewInstantQuery(ctx, q.db, nil, q.variables.Replace(expression), q.last)
	if err != nil {
		return nil, fmt.Errorf("query %s: %w", expression, err)
	}
	defer query.Close()
	vector, err := query.Exec(ctx).Vector()
	if err != nil {
		return nil, fmt.Errorf("query %s: %w", expression, err)
	}
	var all []series
	for _, one := range vector {
		all = append(all, series{labels: one.Metric, points: []promql.FPoint{{T: one.T, F: one.F}}})
	}
	return all, nil
}
