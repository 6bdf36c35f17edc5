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

package tracing

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
)

// testTracer is a tracer whose spans stay in memory.
type testTracer struct {
	*Tracer
	clock *testclock.FakePassiveClock
	spans *tracetest.InMemoryExporter
}

func newTestTracer(t *testing.T, sampler sdktrace.Sampler) *testTracer {
	t.Helper()
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans), sdktrace.WithSampler(sampler))
	clock := testclock.NewFakePassiveClock(time.Unix(1000, 0))
	return &testTracer{New(provider, clock), clock, spans}
}

// at sets the time, in seconds.
func (t *testTracer) at(seconds int) { t.clock.SetTime(time.Unix(1000+int64(seconds), 0)) }

// listSpans returns all spans in the order of their end: their name, their parent's name, and their times in seconds.
func (t *testTracer) listSpans() []string {
	spans := t.spans.GetSpans()
	names := map[string]string{}
	for _, span := range spans {
		names[span.SpanContext.SpanID().String()] = span.Name
	}
	lines := make([]string, 0, len(spans))
	for _, span := range spans {
		lines = append(lines, fmt.Sprintf("%s of %q %d-%d", span.Name, names[span.Parent.SpanID().String()], span.StartTime.Unix()-1000, span.EndTime.Unix()-1000))
	}
	return lines
}

var testSubject = Subject{SyncTarget: "florin", Inventory: "abc", Resource: "configmaps", Key: types.NamespacedName{Namespace: "shop", Name: "prices"}}

// attributes returns the attributes of the first span of a name.
func (t *testTracer) attributes(name string) map[string]string {
	all := map[string]string{}
	for _, span := range t.spans.GetSpans() {
		if span.Name == name {
			for _, attribute := range span.Attributes {
				all[string(attribute.Key)] = attribute.Value.Emit()
			}
			return all
		}
	}
	return all
}

// One change makes one trace: from the event, through the plan and the request, to the moment at which the write was observed.
func TestTraceOfOneChange(t *testing.T) {
	tracer := newTestTracer(t, sdktrace.AlwaysSample())
	tracer.at(3)
	pass := tracer.Pass(testSubject, time.Unix(1001, 0), "mailbox")
	planning := pass.Now()
	tracer.at(4)
	pass.Planned(planning)
	sent := pass.Now()
	tracer.at(6)
	FromContext(NewContext(t.Context(), pass)).Request(Request{Destination: "target", Class: "object", Verb: "apply", Resource: "configmaps", Code: 201}, sent)
	observed := pass.Acknowledgement("target")
	tracer.at(7)
	pass.End(Result{Direction: "down", Action: "Create", Cause: "Missing"})
	tracer.at(9)
	observed()

	want := []string{`queue of "sync" 1-3`, `plan of "sync" 3-4`, `apply target of "sync" 4-6`, `sync of "" 1-7`, `acknowledge of "sync" 6-9`}
	if got := tracer.listSpans(); !slices.Equal(got, want) {
		t.Errorf("want the spans %q, got %q", want, got)
	}
	if got := len(slices.Compact(traceIDs(tracer))); got != 1 {
		t.Errorf("the spans are of %d traces", got)
	}
	for name, want := range map[string]map[string]string{
		"sync": {
			"synchub.sync_target": "florin", "synchub.inventory": "abc", "synchub.resource": "configmaps", "synchub.namespace": "shop", "synchub.name": "prices",
			"synchub.origin": "mailbox", "synchub.direction": "down", "synchub.action": "Create", "synchub.cause": "Missing",
		},
		"apply target": {
			"synchub.destination": "target", "synchub.class": "object", "synchub.verb": "apply", "synchub.request.resource": "configmaps",
			"http.response.status_code": "201",
		},
		"acknowledge": {"synchub.destination": "target"},
	} {
		if got := tracer.attributes(name); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("want for %s %v, got %v", name, want, got)
		}
	}
}

func traceIDs(tracer *testTracer) []string {
	var ids []string
	for _, span := range tracer.spans.GetSpans() {
		ids = append(ids, span.SpanContext.TraceID().String())
	}
	return ids
}

// A pass that finds everything in sync has no trace.
func TestNoTraceAtRest(t *testing.T) {
	tracer := newTestTracer(t, sdktrace.AlwaysSample())
	pass := tracer.Pass(testSubject, time.Time{}, "other")
	pass.Planned(pass.Now())
	pass.End(Result{Direction: "down", Action: "None", Cause: "InSync"})
	if got := tracer.listSpans(); len(got) > 0 {
		t.Errorf("the spans are %q", got)
	}
}

// A pass that fails before any request, or gets no answer, records the failure with constants only.
func TestTraceOfAFailure(t *testing.T) {
	tracer := newTestTracer(t, sdktrace.AlwaysSample())
	pass := tracer.Pass(testSubject, time.Time{}, "other")
	pass.Planned(pass.Now())
	pass.End(Result{Direction: "down", Reason: "Conflict"})
	if got, want := tracer.listSpans(), []string{`plan of "sync" 0-0`, `sync of "" 0-0`}; !slices.Equal(got, want) {
		t.Errorf("want the spans %q, got %q", want, got)
	}
	if root := tracer.spans.GetSpans()[1]; root.Status != (sdktrace.Status{Code: codes.Error, Description: "Conflict"}) {
		t.Errorf("the status is %v", root.Status)
	}

	for code, want := range map[int]sdktrace.Status{0: {Code: codes.Error, Description: "no answer"}, 200: {}, 409: {Code: codes.Error}, 503: {Code: codes.Error}} {
		tracer.spans.Reset()
		pass := tracer.Pass(testSubject, time.Time{}, "other")
		pass.Request(Request{Destination: "target", Verb: "apply", Code: code}, pass.Now())
		if got := tracer.spans.GetSpans()[0].Status; got != want {
			t.Errorf("%d: want the status %v, got %v", code, want, got)
		}
	}
}

// A trace that is not sampled has no spans, and Acknowledgement returns nil.
func TestNotSampled(t *testing.T) {
	tracer := newTestTracer(t, sdktrace.NeverSample())
	pass := tracer.Pass(testSubject, time.Unix(1001, 0), "mailbox")
	pass.Planned(pass.Now())
	pass.Request(Request{Destination: "target", Verb: "apply", Code: 200}, pass.Now())
	if pass.Acknowledgement("target") != nil {
		t.Error("a function must be kept")
	}
	pass.End(Result{Reason: "Conflict"})
	if got := tracer.listSpans(); len(got) > 0 {
		t.Errorf("the spans are %q", got)
	}
}

// Names that users choose are bounded and escaped: a collector refuses a batch with a text that is no valid UTF-8.
func TestNamesAreEscaped(t *testing.T) {
	tracer := newTestTracer(t, sdktrace.AlwaysSample())
	hostile := "a\xff\n\u202e" + strings.Repeat("n", 1000)
	pass := tracer.Pass(Subject{SyncTarget: hostile, Resource: hostile, Key: types.NamespacedName{Namespace: hostile, Name: hostile}}, time.Time{}, "other")
	pass.Request(Request{Destination: "target", Verb: "apply", Resource: hostile, Code: 200}, pass.Now())
	pass.End(Result{})
	for _, span := range tracer.spans.GetSpans() {
		for _, attribute := range span.Attributes {
			if value := attribute.Value.Emit(); !utf8.ValidString(value) || len(value) > 256 || strings.ContainsAny(value, "\n\u202e") {
				t.Errorf("%s is %q", attribute.Key, value)
			}
		}
	}
}

// Without a tracer a pass costs nothing.
func TestOffIsFree(t *testing.T) {
	var tracer *Tracer
	ctx := context.Background()
	made := testing.AllocsPerRun(100, func() {
		pass := tracer.Pass(testSubject, time.Time{}, "other")
		inside := NewContext(ctx, pass)
		if inside != ctx || FromContext(inside) != nil {
			t.Error("there is a pass")
		}
		pass.Planned(pass.Now())
		pass.Request(Request{Verb: "apply"}, pass.Now())
		if pass.Acknowledgement("target") != nil {
			t.Error("a function must be kept")
		}
		pass.End(Result{Reason: "Conflict"})
	})
	if made > 0 {
		t.Errorf("a pass makes %v allocations", made)
	}
}
