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

package otlp

import (
	"context"
	"sync/atomic"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/synchub-dev/synchub/provider/redact"
)

var spansTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "synchub_trace_spans_total",
	Help: "Spans of sampled traces, by result: sent, failed if the collector did not take them, dropped if too many were waiting.",
}, []string{"result"})

// Collectors returns the package's metrics, to be registered once.
func Collectors() []prometheus.Collector { return []prometheus.Collector{spansTotal} }

// spanCounter counts spans, and drops those beyond the limit before the processor does, which would not count them.
type spanCounter struct {
	log   logr.Logger
	limit int64
	// unsent is the number of spans that wait or are being sent.
	unsent atomic.Int64
	// failing is true while the collector does not accept spans. Only the changes are logged.
	failing atomic.Bool
}

func (c *spanCounter) processor(next sdktrace.SpanProcessor) sdktrace.SpanProcessor {
	return countingProcessor{next, c}
}

func (c *spanCounter) exporter(next sdktrace.SpanExporter) sdktrace.SpanExporter {
	return countingExporter{next, c}
}

type countingProcessor struct {
	sdktrace.SpanProcessor
	*spanCounter
}

// OnEnd implements [sdktrace.SpanProcessor].
func (p countingProcessor) OnEnd(span sdktrace.ReadOnlySpan) {
	if p.unsent.Add(1) > p.limit {
		p.unsent.Add(-1)
		spansTotal.WithLabelValues("dropped").Inc()
		return
	}
	p.SpanProcessor.OnEnd(span)
}

type countingExporter struct {
	sdktrace.SpanExporter
	*spanCounter
}

// ExportSpans implements [sdktrace.SpanExporter]. It returns no error, because the failure is counted and logged.
func (e countingExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	defer e.unsent.Add(-int64(len(spans)))
	result := "sent"
	err := e.SpanExporter.ExportSpans(ctx, spans)
	if err != nil {
		result = "failed"
	}
	spansTotal.WithLabelValues(result).Add(float64(len(spans)))
	switch changed := e.failing.Swap(err != nil) != (err != nil); {
	case changed && err != nil:
		e.log.Info("the collector does not take traces, which are dropped; check --tracing-endpoint", "error", redact.Text(err.Error()))
	case changed:
		e.log.Info("the collector takes traces again")
	}
	return nil
}
