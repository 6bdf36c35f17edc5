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

package objectsync

import (
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/provider/metrics/targetlabels"
	"github.com/synchub-dev/synchub/provider/tracing"
)

// recordTraces makes the hub start again with a tracer. The spans stay in memory.
func (h *testHub) recordTraces() *tracetest.InMemoryExporter {
	h.t.Helper()
	spans := tracetest.NewInMemoryExporter()
	h.stop()
	h.tracer = tracing.New(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)), clock.RealClock{})
	h.start()
	return spans
}

// expectTrace waits for one trace with exactly these spans, and drops them. It returns the attributes of the root.
func (h *testHub) expectTrace(spans *tracetest.InMemoryExporter, want ...string) attribute.Set {
	h.t.Helper()
	slices.Sort(want)
	var all tracetest.SpanStubs
	names := func() (names []string) {
		all = spans.GetSpans()
		for _, span := range all {
			names = append(names, span.Name)
		}
		slices.Sort(names)
		return names
	}
	h.until("the trace is complete", func() bool { return len(names()) >= len(want) })
	h.waitUntilIdle()
	if got := names(); !slices.Equal(got, want) {
		h.t.Fatalf("want the spans %q, got %q", want, got)
	}
	spans.Reset()
	root := all[slices.IndexFunc(all, func(span tracetest.SpanStub) bool { return !span.Parent.IsValid() })]
	for _, span := range all {
		if isRoot := span.Name == "sync"; span.SpanContext.TraceID() != root.SpanContext.TraceID() || !isRoot && span.Parent.SpanID() != root.SpanContext.SpanID() || span.StartTime.Before(root.StartTime) {
			h.t.Errorf("%s does not belong to the trace: %+v of %+v", span.Name, span, root)
		}
	}
	return attribute.NewSet(root.Attributes...)
}

// Each change makes one trace. Its own event and a restart of the hub make none.
func TestTraceOfEachChange(t *testing.T) {
	h := newScalingHub(t, "")
	h.waitUntilIdle()
	h.deployment("a", "")
	h.expectOnTarget(deploymentsV1, "web", runsAs("a", 1))
	targetlabels.Set(h.owner.SyncTarget, "florin", "abc")
	defer targetlabels.Forget(h.owner.SyncTarget)
	spans := h.recordTraces()
	h.waitUntilIdle()
	if got := spans.GetSpans(); len(got) > 0 {
		t.Errorf("at rest there are %v", got)
	}

	h.deployment("b", "")
	root := h.expectTrace(spans, "sync", "queue", "plan", "apply target", "acknowledge")
	want := attribute.NewSet(
		attribute.String("synchub.sync_target", "florin"), attribute.String("synchub.inventory", "abc"), attribute.String("synchub.resource", "deployments.apps"),
		attribute.String("synchub.namespace", h.namespace), attribute.String("synchub.name", "web"), attribute.String("synchub.origin", "mailbox"),
		attribute.String("synchub.direction", "down"), attribute.String("synchub.action", "Apply"), attribute.String("synchub.cause", "Changed"),
	)
	if !root.Equals(&want) {
		t.Errorf("want %s, got %s", want.Encoded(attribute.DefaultEncoder()), root.Encoded(attribute.DefaultEncoder()))
	}
	h.reportStatus(5)
	root = h.expectTrace(spans, "sync", "queue", "plan", "patch mailbox", "acknowledge")
	if origin, _ := root.Value("synchub.origin"); origin.AsString() != "target" {
		t.Errorf("the origin of the status is %q", origin.AsString())
	}
	h.drop(deploymentsV1, h.namespace, "web")
	root = h.expectTrace(spans, "sync", "queue", "plan", "delete target", "acknowledge")
	if action, _ := root.Value("synchub.action"); action.AsString() != "Delete" {
		t.Errorf("the action is %q", action.AsString())
	}
}

func TestFirstChange(t *testing.T) {
	first, later := time.Unix(1, 0), time.Unix(2, 0)
	for name, test := range map[string]struct {
		pending pendingChange
		at      time.Time
		origin  string
	}{
		"no change":                      {pendingChange{}, time.Time{}, "other"},
		"a config":                       {pendingChange{since: first}, first, "other"},
		"a config, then the mailbox":     {pendingChange{since: first, mailbox: later}, first, "other"},
		"the mailbox":                    {pendingChange{since: first, mailbox: first}, first, "mailbox"},
		"the mailbox, then the target":   {pendingChange{since: first, mailbox: first, target: later}, first, "mailbox"},
		"the target":                     {pendingChange{since: first, target: first}, first, "target"},
		"the target, then the mailbox":   {pendingChange{since: first, mailbox: later, target: first}, first, "target"},
		"the target, that is decided on": {pendingChange{target: first, since: later}, first, "target"},
		"a verified absence":             {pendingChange{mailbox: first}, first, "mailbox"},
	} {
		t.Run(name, func(t *testing.T) {
			if at, origin := test.pending.firstChange(); !at.Equal(test.at) || origin != test.origin {
				t.Errorf("want %s of %q, got %s of %q", test.at, test.origin, at, origin)
			}
		})
	}
}
