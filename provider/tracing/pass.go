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
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/synchub-dev/synchub/provider/redact"
)

// Names of spans. A span of a request has the verb and the destination as its name, such as "apply target".
const (
	spanSync        = "sync"
	spanQueue       = "queue"
	spanPlan        = "plan"
	spanAcknowledge = "acknowledge"
)

// Pass records the trace of one pass. Its methods do nothing on the nil pass. They are safe for concurrent use.
type Pass struct {
	*Tracer
	subject Subject
	changed time.Time
	origin  string
	started time.Time

	lock sync.Mutex
	// root is nil until the trace begins.
	root trace.Span
	// plans are the planning times before the trace begins.
	plans []interval
}

type interval struct{ from, to time.Time }

// Now returns the time for the other methods; zero for the nil pass.
func (p *Pass) Now() time.Time {
	if p == nil {
		return time.Time{}
	}
	return p.clock.Now()
}

// Planned records that a plan was made since a time.
func (p *Pass) Planned(since time.Time) {
	if p == nil {
		return
	}
	planned := interval{since, p.Now()}
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.root == nil {
		p.plans = append(p.plans, planned)
		return
	}
	p.recordLocked(spanPlan, planned)
}

// Request is one request of a pass and its answer.
type Request struct {
	// Destination is the server: mailbox, target or control.
	Destination, Class, Verb string
	// Resource is the resource of the request, with its subresource.
	Resource string
	// Code is the status code of the answer; zero for none.
	Code int
}

// Request records a request that was sent at a time, and answered now. The first one begins the trace.
func (p *Pass) Request(request Request, sent time.Time) {
	if p == nil {
		return
	}
	answered := p.Now()
	p.lock.Lock()
	defer p.lock.Unlock()
	if !p.beginLocked() {
		return
	}
	span := p.startLocked(request.Verb+" "+request.Destination, sent, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("synchub.destination", request.Destination),
		attribute.String("synchub.class", request.Class),
		attribute.String("synchub.verb", request.Verb),
		attribute.String("synchub.request.resource", redact.Text(request.Resource)),
	))
	if request.Code == 0 {
		span.SetStatus(codes.Error, "no answer")
	} else {
		span.SetAttributes(attribute.Int("http.response.status_code", request.Code))
		if request.Code >= http.StatusBadRequest {
			span.SetStatus(codes.Error, "")
		}
	}
	span.End(trace.WithTimestamp(answered))
}

// Acknowledgement returns a function to call when the hub observes the write that was acknowledged now. It is nil if the trace
// is not recorded. It may be called after the end of the pass. side is where the write was made: mailbox or target.
func (p *Pass) Acknowledgement(side string) func() {
	if p == nil {
		return nil
	}
	written := p.Now()
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.root == nil || !p.root.IsRecording() {
		return nil
	}
	// The function keeps the identity of the trace only, not the pass.
	tracer, parent := p.Tracer, p.root.SpanContext()
	return func() {
		ctx := trace.ContextWithSpanContext(context.Background(), parent)
		_, span := tracer.tracer.Start(ctx, spanAcknowledge, trace.WithTimestamp(written), trace.WithAttributes(attribute.String("synchub.destination", side)))
		span.End(trace.WithTimestamp(tracer.clock.Now()))
	}
}

// Result is the outcome of a pass.
type Result struct {
	// Direction, Action and Cause are the decision, as in the metrics.
	Direction, Action, Cause string
	// Reason is why the object failed; empty if it did not.
	Reason string
}

// End ends the pass. A pass that sent no request has a trace only if it failed.
func (p *Pass) End(result Result) {
	if p == nil {
		return
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.root == nil && (result.Reason == "" || !p.beginLocked()) {
		return
	}
	p.root.SetAttributes(
		attribute.String("synchub.direction", result.Direction),
		attribute.String("synchub.action", result.Action),
		attribute.String("synchub.cause", result.Cause),
	)
	if result.Reason != "" {
		p.root.SetAttributes(attribute.String("error.type", result.Reason))
		p.root.SetStatus(codes.Error, result.Reason)
	}
	p.root.End(trace.WithTimestamp(p.Now()))
}

// beginLocked begins the trace unless it has begun, and reports whether it is recorded. It requires the lock, as the other
// methods below do.
func (p *Pass) beginLocked() bool {
	if p.root != nil {
		return p.root.IsRecording()
	}
	began := p.started
	if !p.changed.IsZero() {
		began = p.changed
	}
	_, p.root = p.tracer.Start(context.Background(), spanSync, trace.WithNewRoot(), trace.WithTimestamp(began))
	if !p.root.IsRecording() {
		return false
	}
	p.root.SetAttributes(
		// Texts from outside are bounded and escaped: one that is no valid UTF-8 would make the exporter fail.
		attribute.String("synchub.sync_target", redact.Text(p.subject.SyncTarget)),
		attribute.String("synchub.inventory", redact.Text(p.subject.Inventory)),
		attribute.String("synchub.resource", redact.Text(p.subject.Resource)),
		attribute.String("synchub.namespace", redact.Text(p.subject.Key.Namespace)),
		attribute.String("synchub.name", redact.Text(p.subject.Key.Name)),
		attribute.String("synchub.origin", p.origin),
	)
	if !p.changed.IsZero() {
		p.recordLocked(spanQueue, interval{p.changed, p.started})
	}
	for _, planned := range p.plans {
		p.recordLocked(spanPlan, planned)
	}
	p.plans = nil
	return true
}

// recordLocked records a span of the trace that has ended.
func (p *Pass) recordLocked(name string, during interval) {
	p.startLocked(name, during.from).End(trace.WithTimestamp(during.to))
}

func (p *Pass) startLocked(name string, from time.Time, options ...trace.SpanStartOption) trace.Span {
	_, span := p.tracer.Start(trace.ContextWithSpan(context.Background(), p.root), name, append(options, trace.WithTimestamp(from))...)
	return span
}
