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
	"fmt"
	"net/url"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"
	"google.golang.org/grpc"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/provider/redact"
	"github.com/synchub-dev/synchub/provider/tracing"
)

const (
	// SamplesAll is the sampling rate at which every trace is recorded.
	SamplesAll = 1_000_000
	// maxUnsentSpans bounds the spans that wait or are being sent. A span takes about 2 KiB.
	maxUnsentSpans = 2048
	// maxAttributes and maxAttributeLength bound each span. The hub's own spans have fewer and shorter ones.
	maxAttributes      = 16
	maxAttributeLength = redact.MaxText
	// sendTimeout bounds one batch with its retries.
	sendTimeout = 10 * time.Second
)

// Options configure an [Exporter].
type Options struct {
	// Endpoint is the URL of the collector, as [ValidateEndpoint] accepts it.
	Endpoint string
	// SamplesPerMillion is how many of a million traces are recorded.
	SamplesPerMillion int
	// Version and Instance describe the hub in each trace.
	Version, Instance string
	Log               logr.Logger
}

// ValidateEndpoint returns an error unless the endpoint is a URL of scheme http or https with a host and a port only.
func ValidateEndpoint(endpoint string) error {
	parsed, err := url.Parse(endpoint)
	switch {
	case err != nil:
		return fmt.Errorf("%q is no URL", redact.Text(endpoint))
	case parsed.Scheme != "http" && parsed.Scheme != "https":
		return fmt.Errorf("%q does not begin with http:// or https://", redact.Text(endpoint))
	case parsed.Hostname() == "" || parsed.Port() == "":
		return fmt.Errorf("%q does not name a host and a port", redact.Text(endpoint))
	case parsed.User != nil || parsed.Path != "" || parsed.RawQuery != "" || parsed.Fragment != "":
		return fmt.Errorf("%q has more than a host and a port", redact.Text(endpoint))
	default:
		return nil
	}
}

// Exporter sends traces to a collector.
type Exporter struct {
	provider *sdktrace.TracerProvider
}

// New returns an exporter, which connects to the collector when it has spans. Certificates for https and headers come from the
// environment, as the specification of OTLP exporters defines: OTEL_EXPORTER_OTLP_CERTIFICATE, OTEL_EXPORTER_OTLP_HEADERS.
func New(ctx context.Context, options Options) (*Exporter, error) {
	client, err := otlptracegrpc.New(ctx,
		otlptracegrpc.WithEndpointURL(options.Endpoint),
		otlptracegrpc.WithTimeout(sendTimeout),
		// As for targets, the proxy of the environment does not count.
		otlptracegrpc.WithDialOption(grpc.WithNoProxy()),
	)
	if err != nil {
		return nil, fmt.Errorf("cannot make an exporter of traces to %s: %w", options.Endpoint, err)
	}
	described, err := resource.New(ctx, resource.WithAttributes(
		semconv.ServiceName("synchub"), semconv.ServiceVersion(options.Version), semconv.ServiceInstanceID(options.Instance),
	), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("cannot describe the hub in traces; check OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	counter := &spanCounter{log: options.Log, limit: maxUnsentSpans}
	batches := sdktrace.NewBatchSpanProcessor(counter.exporter(client), sdktrace.WithMaxQueueSize(maxUnsentSpans), sdktrace.WithExportTimeout(sendTimeout))
	return &Exporter{provider: sdktrace.NewTracerProvider(
		sdktrace.WithSpanProcessor(counter.processor(batches)),
		sdktrace.WithSampler(sdktrace.TraceIDRatioBased(float64(options.SamplesPerMillion)/SamplesAll)),
		sdktrace.WithResource(described),
		sdktrace.WithRawSpanLimits(sdktrace.SpanLimits{AttributeCountLimit: maxAttributes, AttributeValueLengthLimit: maxAttributeLength}),
	)}, nil
}

// Tracer returns the tracer whose spans the exporter sends.
func (e *Exporter) Tracer() *tracing.Tracer { return tracing.New(e.provider, clock.RealClock{}) }

// Shutdown sends the spans that are left, until ctx ends. Spans that end later are lost.
func (e *Exporter) Shutdown(ctx context.Context) error {
	if err := e.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("cannot send the last traces: %w", err)
	}
	return nil
}
