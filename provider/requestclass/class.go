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

// Package requestclass classifies the hub's requests by their cause. The classes come from the first rule of the design: one
// write per change and no request at rest. Transports count requests by class.
package requestclass

import "context"

// Class is the purpose of a request.
type Class string

const (
	// Object requests sync one object. A change normally causes no requests of other classes.
	Object Class = "object"
	// Extra requests have a special cause: a missing namespace, a rejected write, the verification of an absence, an event.
	Extra Class = "extra"
	// Background requests are limited per minute, regardless of changes: watches, leases, health, status of SyncTargets.
	Background Class = "background"
)

type key struct{}

// With returns a context whose requests have the class.
func With(ctx context.Context, class Class) context.Context {
	return context.WithValue(ctx, key{}, class)
}

// Of returns the class of the context's requests: [Background] unless [With] set another one.
func Of(ctx context.Context) Class {
	if class, ok := ctx.Value(key{}).(Class); ok {
		return class
	}
	return Background
}
