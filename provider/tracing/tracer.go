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
	"time"

	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// scope is the name of the instrumentation scope of all spans.
const scope = "github.com/synchub-dev/synchub"

// Tracer begins passes. It is safe for concurrent use.
type Tracer struct {
	tracer trace.Tracer
	clock  clock.PassiveClock
}

// New returns a tracer that gives its spans to the provider, which decides what is sampled.
func New(provider trace.TracerProvider, clock clock.PassiveClock) *Tracer {
	return &Tracer{tracer: provider.Tracer(scope), clock: clock}
}

// Subject is the object of a pass.
type Subject struct {
	// SyncTarget is the name of the SyncTarget, and Inventory the logical cluster of its inventory workspace.
	SyncTarget, Inventory string
	// Resource is the published resource, such as deployments.apps.
	Resource string
	Key      types.NamespacedName
}

// Pass returns the pass that begins now, nil for the nil tracer. changed is when the first change was observed that the pass
// covers, and origin the side of that change. A zero time means no change.
func (t *Tracer) Pass(subject Subject, changed time.Time, origin string) *Pass {
	if t == nil {
		return nil
	}
	return &Pass{Tracer: t, subject: subject, changed: changed, origin: origin, started: t.clock.Now()}
}

type passKey struct{}

// NewContext returns a context whose requests belong to the pass: ctx itself for the nil pass.
func NewContext(ctx context.Context, pass *Pass) context.Context {
	if pass == nil {
		return ctx
	}
	return context.WithValue(ctx, passKey{}, pass)
}

// FromContext returns the pass to which requests with the context belong, nil for none.
func FromContext(ctx context.Context) *Pass {
	pass, _ := ctx.Value(passKey{}).(*Pass)
	return pass
}
