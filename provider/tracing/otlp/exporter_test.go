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
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/provider/tracing"
)

// receiver is a collector of traces.
type receiver struct {
	collector.UnimplementedTraceServiceServer

	lock sync.Mutex
	// spans are the names of received spans, and attributes the attributes of their resource.
	spans      []string
	attributes map[string]string
}

// Export implements [collector.TraceServiceServer].
func (r *receiver) Export(_ context.Context, request *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.attributes = map[string]string{}
	for _, one := range request.GetResourceSpans() {
		for _, attribute := range one.GetResource().GetAttributes() {
			r.attributes[attribute.GetKey()] = attribute.GetValue().GetStringValue()
		}
		for _, scope := range one.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				r.spans = append(r.spans, span.GetName())
			}
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// listen listens on loopback until the test ends.
func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// startReceiver starts a collector, and returns its endpoint.
func startReceiver(t *testing.T) (*receiver, string) {
	t.Helper()
	r, server, listener := &receiver{}, grpc.NewServer(), listen(t)
	collector.RegisterTraceServiceServer(server, r)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return r, "http://" + listener.Addr().String()
}

func newTestExporter(t *testing.T, endpoint string, samplesPerMillion int) *Exporter {
	t.Helper()
	exporter, err := New(t.Context(), Options{Endpoint: endpoint, SamplesPerMillion: samplesPerMillion, Version: "v1.2.3", Instance: "hub-0", Log: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	return exporter
}

// record records the trace of one change.
func record(exporter *Exporter) {
	pass := exporter.Tracer().Pass(tracing.Subject{SyncTarget: "florin", Resource: "configmaps", Key: types.NamespacedName{Namespace: "shop", Name: "prices"}}, time.Now(), "mailbox")
	pass.Planned(pass.Now())
	pass.Request(tracing.Request{Destination: "target", Class: "object", Verb: "apply", Code: 201}, pass.Now())
	pass.End(tracing.Result{Direction: "down", Action: "Create", Cause: "Missing"})
}

func TestTheCollectorGetsTheTrace(t *testing.T) {
	// The environment's endpoint and proxy do not count; its attributes do.
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://192.0.2.1:4317")
	t.Setenv("HTTPS_PROXY", "http://192.0.2.1:3128")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	got, endpoint := startReceiver(t)
	exporter := newTestExporter(t, endpoint, SamplesAll)
	sent := testutil.ToFloat64(spansTotal.WithLabelValues("sent"))
	record(exporter)
	if err := exporter.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := []string{"queue", "plan", "apply target", "sync"}; !slices.Equal(got.spans, want) {
		t.Errorf("want the spans %q, got %q", want, got.spans)
	}
	want := map[string]string{"service.name": "synchub", "service.version": "v1.2.3", "service.instance.id": "hub-0", "deployment.environment.name": "test"}
	if fmt.Sprint(got.attributes) != fmt.Sprint(want) {
		t.Errorf("want the resource %v, got %v", want, got.attributes)
	}
	if counted := testutil.ToFloat64(spansTotal.WithLabelValues("sent")) - sent; counted != 4 {
		t.Errorf("%v spans count as sent", counted)
	}
}

func TestNoRequestsWithoutSamples(t *testing.T) {
	got, endpoint := startReceiver(t)
	exporter := newTestExporter(t, endpoint, 0)
	record(exporter)
	if err := exporter.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(got.spans) > 0 {
		t.Errorf("the collector got %q", got.spans)
	}
}

// A collector that accepts connections and never answers holds up neither the passes nor the end. Otherwise the test does not
// end.
func TestACollectorThatHangs(t *testing.T) {
	exporter := newTestExporter(t, "http://"+listen(t).Addr().String(), SamplesAll)
	dropped := testutil.ToFloat64(spansTotal.WithLabelValues("dropped"))
	for range 2 * maxUnsentSpans {
		record(exporter)
	}
	if got := testutil.ToFloat64(spansTotal.WithLabelValues("dropped")) - dropped; got < maxUnsentSpans {
		t.Errorf("only %v spans were dropped", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := exporter.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown returned %v", err)
	}
}

// failingExporter accepts no spans while err is set.
type failingExporter struct {
	sdktrace.SpanExporter
	err error
}

func (f *failingExporter) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return f.err }

// Every span counts once, and the limit holds spans until they are sent or have failed.
func TestSpanCounter(t *testing.T) {
	counter, next := &spanCounter{log: logr.Discard(), limit: 2}, tracetest.NewSpanRecorder()
	collector := &failingExporter{err: errors.New("unavailable")}
	processor, exporter := counter.processor(next), counter.exporter(collector)
	span := tracetest.SpanStub{Name: "one"}.Snapshot()
	counted := func() map[string]float64 {
		all := map[string]float64{}
		for _, result := range []string{"sent", "failed", "dropped"} {
			all[result] = testutil.ToFloat64(spansTotal.WithLabelValues(result))
		}
		return all
	}
	before := counted()
	end := func(times int) {
		for range times {
			processor.OnEnd(span)
		}
	}
	export := func(spans int) {
		if err := exporter.ExportSpans(t.Context(), slices.Repeat([]sdktrace.ReadOnlySpan{span}, spans)); err != nil {
			t.Errorf("the batches would log %v again", err)
		}
	}
	end(3)
	export(2)
	collector.err = nil
	end(1)
	export(1)
	end(3)
	for result, want := range map[string]float64{"sent": 1, "failed": 2, "dropped": 2} {
		if got := counted()[result] - before[result]; got != want {
			t.Errorf("want %v spans %s, got %v", want, result, got)
		}
	}
	if got := len(next.Ended()); got != 5 {
		t.Errorf("%d spans wait", got)
	}
}

func TestValidateEndpoint(t *testing.T) {
	for endpoint, ok := range map[string]bool{
		"http://collector.observability:4317": true, "https://127.0.0.1:4317": true, "http://[::1]:4317": true,
		"collector:4317": false, "http://collector": false, "http://:4317": false, "http://collector:4317/v1/traces": false,
		"http://user:pass@collector:4317": false, "http://collector:4317?x=y": false, "unix:///run/collector": false, "http://\x00:1": false,
	} {
		if err := ValidateEndpoint(endpoint); (err == nil) != ok {
			t.Errorf("%q: %v", endpoint, err)
		}
	}
}
